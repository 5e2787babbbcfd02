/// A call as it is put on the wire.
package struct CallErrand: Hashable, Sendable {
    package let url: String
    /// The value of the field `Authorization`. It never belongs into a log.
    package let authorization: String
    package let contentType: String
    package let content: [UInt8]
    /// What is left of the call's time.
    package let timeout: Duration
    /// Whether the last call to the host failed, so that this one uses nothing of its connection.
    package let avoidsOldConnections: Bool
}
