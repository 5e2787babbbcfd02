package import Verification

/// A client's connection, whatever its protocol: what its host asks of it.
package protocol ClientConnection: AnyObject {
    /// What the peer's address has used of its limits; `nil` where it has none of its own.
    var addressEntry: AddressEntry? { get }
    /// The gateway ends: the connection takes no more requests than are on their way.
    func drain()
    /// The time to end by itself is over.
    func abort()
}
