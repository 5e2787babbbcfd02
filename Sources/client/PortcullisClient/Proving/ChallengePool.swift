import Foundation

/// Challenges that were given and not used yet. The newest is used first: after a restart of the
/// gateway the older ones are worth nothing.
struct ChallengePool: Sendable {
    private struct Entry {
        let text: String
        let until: Date
    }

    /// Oldest first.
    private var entries: [Entry] = []
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    var count: Int { entries.count }

    /// Keeps a challenge; the oldest gives way.
    mutating func add(_ text: String, until: Date) {
        guard limit > 0, !entries.contains(where: { $0.text == text }) else { return }
        if entries.count >= limit { entries.removeFirst() }
        entries.append(Entry(text: text, until: until))
    }

    /// The newest challenge that is still good.
    mutating func take(now: Date) -> String? {
        entries.removeAll { $0.until <= now }
        return entries.popLast()?.text
    }

    mutating func clear() { entries = [] }
}
