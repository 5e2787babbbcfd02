/// Where calls to Apple are handed in.
package protocol AppleCalling: Sendable {
    /// Sends a call when rate, breaker and queue allow it.
    ///
    /// `done` is called exactly once, within `call.timeout`, on a queue of the desk and never on a
    /// lane; it must not wait.
    func send(_ call: AppleCall, _ done: @escaping @Sendable (AppleReply) -> Void)
}
