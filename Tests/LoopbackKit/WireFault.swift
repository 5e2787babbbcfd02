/// Why a test's socket did not do what was asked.
package enum WireFault: Error, Equatable {
    /// Nothing happened until the deadline.
    case timedOut
    /// The peer has sent its last byte.
    case ended
    /// The peer has reset the connection.
    case reset
    case failed(String, Int32)
    /// What came is no HTTP message.
    case malformed(String)
}
