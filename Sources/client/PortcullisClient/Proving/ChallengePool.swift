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
    /// Those that were used last. A cached answer brings the one that it came with again.
    private var used: [String] = []
    private let limit: Int

    /// The most used challenges that are remembered.
    private static let usedMax = 64

    init(limit: Int) { self.limit = limit }

    var count: Int { entries.count }

    /// Keeps a challenge; the oldest gives way.
    mutating func add(_ text: String, until: Date) {
        guard limit > 0, !used.contains(text), !entries.contains(where: { $0.text == text })
        else { return }
        if entries.count >= limit { entries.removeFirst() }
        entries.append(Entry(text: text, until: until))
    }

    /// The newest challenge that is still good.
    mutating func take(now: Date) -> String? {
        entries.removeAll { $0.until <= now }
        guard let text = entries.popLast()?.text else { return nil }
        remember(text)
        return text
    }

    /// Remembers a challenge as used.
    mutating func remember(_ text: String) {
        if used.count >= Self.usedMax { used.removeFirst() }
        used.append(text)
    }

    /// Whether a challenge was used before.
    func hasUsed(_ text: String) -> Bool { used.contains(text) }

    mutating func clear() { entries = [] }
}
