/// Requests that were admitted, to be sent again.
struct ReplayMemory {
    private var messages: [Message] = []
    private var place = 0
    private var turn: UInt64 = 0

    /// The most that are kept; the oldest goes first.
    private static let countMax = 4096

    /// Takes over a request that was admitted, and gives other memory back for it.
    mutating func keep(_ message: inout Message) {
        guard messages.count == Self.countMax else {
            messages.append(message)
            message = Message()
            return
        }
        swap(&messages[place], &message)
        place = (place + 1) % Self.countMax
    }

    /// One of them, older ones and newer ones in turn; `nil` without one.
    mutating func any() -> Message? {
        guard !messages.isEmpty else { return nil }
        turn += 1
        return messages[Int(Scatter.word(turn) % UInt64(messages.count))]
    }
}
