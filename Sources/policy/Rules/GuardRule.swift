/// When a rule that enforces falls back to `observe` by itself: `guard` of a rule.
///
/// A guard gives protection up when too many clients suffer from it. So it must not be possible to
/// make it fall from outside: what it counts is installs, which are keys that Apple has attested
/// and that are enrolled here, and each of them once in a window. Requests would not do: one
/// client can send any number of them.
package struct GuardRule: Hashable, Sendable {
    /// What is counted. The raw value is the word of `of`.
    package enum Unit: String, CaseIterable, Sendable {
        case installs
    }

    package static let windowDefault = Duration.seconds(300)
    package static let minimumDefault = 100
    /// Fewer refused installs than this don't make it fall, whatever their share: a handful is
    /// chance, or one person's devices.
    package static let refusedMin = 10

    /// The share of the installs above which it falls; neither nothing nor everything.
    package let refused: Share
    /// What is looked back at, 1m…1h.
    package var window = windowDefault
    /// The installs without which nothing is concluded, 10…1000000.
    package var minimum = minimumDefault

    package init(refused: Share) { self.refused = refused }
}
