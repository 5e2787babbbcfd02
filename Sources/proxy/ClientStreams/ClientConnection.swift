package import Verification

/// A client's connection, whatever its protocol: what its host asks of it.
package protocol ClientConnection: AnyObject {
    /// What the peer's address has used of its limits; `nil` where it has none of its own.
    var addressEntry: AddressEntry? { get }
    /// Bytes of responses that wait for windows to open.
    var waitingBytes: Int { get }
    /// Ends the requests whose responses wait for windows, in its next turn.
    func dropWaiting()
    /// The gateway ends: the connection takes no more requests than are on their way.
    func drain()
    /// The time to end by itself is over.
    func abort()
}

// HTTP/1.1 has no windows.
extension ClientConnection {
    package var waitingBytes: Int { 0 }
    package func dropWaiting() {}
}
