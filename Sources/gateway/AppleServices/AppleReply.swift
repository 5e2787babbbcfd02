/// What became of a call.
package enum AppleReply: Hashable, Sendable {
    /// Apple answered. What the status means is the asker's to say.
    ///
    /// - retryAfter: seconds, where the answer names them.
    case answered(status: Int, retryAfter: Int?, body: [UInt8])
    /// Nothing left this machine, so the call can be made again without harm.
    case unsent(AppleFault)
    /// It was begun, and whether Apple took it is unknown.
    case failed(AppleFault)
}
