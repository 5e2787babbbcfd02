/// The process that decides in the place of this one, which has handed its part over to it.
///
/// Questions and answers are bytes; who asks and who answers has one file for both.
package protocol Successor: AnyObject, Sendable {
    /// Asks, and waits; `nil` when no answer comes in time or the process is gone.
    func ask(_ question: [UInt8]) -> [UInt8]?
    /// Asks. `answered` is called once, maybe before this returns. Uses of counters are answered in
    /// the order in which they were asked.
    func ask(_ question: [UInt8], _ answered: @escaping @Sendable ([UInt8]?) -> Void)
}
