/// Bytes in two directions: one side of a tunnel. A ``Connection`` is one, and a stream of a
/// protocol that carries many on one connection can be one.
package protocol ByteStream: AnyObject {
    /// Bytes that wait in memory to be sent.
    var unsentBytes: Int { get }
    /// Reads once.
    func read() -> Connection.ReadOutcome
    /// Hands bytes over. What is not taken at once is kept.
    func write(_ bytes: Span<UInt8>) -> Connection.WriteOutcome
    /// Asks for ``ByteStreamOwner/readable(_:)`` when there may be something to read.
    func resumeReading()
    /// Says that nothing more will be sent; reading goes on.
    func shutDownOutput()
    /// Calls ``ByteStreamOwner/deadlinePassed(_:)`` when this time is over; `nil` for never.
    func setDeadline(milliseconds: UInt64?)
    /// Closes the stream. The owner is told with ``ByteStreamOwner/closed(_:)``.
    func close()
}

/// What uses a ``ByteStream``.
package protocol ByteStreamOwner: AnyObject {
    /// There may be something to read.
    func readable(_ stream: any ByteStream)
    /// What waited to be sent has been sent.
    func drained(_ stream: any ByteStream)
    /// The peer is gone in both directions, and nobody has read that.
    func broke(_ stream: any ByteStream)
    /// The deadline has passed, or what waits can't be sent.
    func failed(_ stream: any ByteStream)
    /// The stream was closed.
    func closed(_ stream: any ByteStream)
}

extension Connection: ByteStream {}
