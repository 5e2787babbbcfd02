/// For how long a key is kept that nobody uses: whole days.
package struct KeyAge: Hashable, Sendable {
    /// Long enough for a device that was in a drawer, and for a mistake to be noticed.
    package static let range = Duration.seconds(30 * 86_400)...Duration.seconds(3_650 * 86_400)
    package static let allowed = "use 30d…3650d"

    package let seconds: Int64

    package init?(_ text: String) {
        guard let duration = Duration(setting: text), Self.range.contains(duration) else {
            return nil
        }
        seconds = duration.components.seconds
    }
}
