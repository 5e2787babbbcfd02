/// The changes of orders that not all event loops have yet.
struct OrderDelivery {
    typealias Answer = @Sendable (_ areAllTold: Bool) -> Void

    private struct Change {
        /// The number of event loops that still have to take it.
        var left: Int
        let answer: Answer
    }

    private var changes: [Int: Change] = [:]
    private var lastNumber = 0

    /// A change goes to the event loops.
    ///
    /// - Returns: its number.
    mutating func begin(loops: Int, _ answer: @escaping Answer) -> Int {
        lastNumber += 1
        changes[lastNumber] = Change(left: loops, answer: answer)
        return lastNumber
    }

    /// An event loop has taken it.
    ///
    /// - Returns: who waits for that, once all event loops have it.
    mutating func taken(_ number: Int) -> Answer? {
        changes[number]?.left -= 1
        return changes[number]?.left == 0 ? end(number) : nil
    }

    /// The wait for busy event loops is over.
    ///
    /// - Returns: who still waits.
    mutating func end(_ number: Int) -> Answer? { changes.removeValue(forKey: number)?.answer }
}
