import Lanes

extension ServerPlace {
    /// How long one attempt to connect may take, and the time from its end to the next.
    private static let attemptMilliseconds: Int32 = 1_000
    private static let pauseMilliseconds: Int32 = 50

    /// Waits until the gateway takes connections: it may be starting just now. Blocks.
    ///
    /// - Parameters:
    ///   - time: how long; when it is over, the run itself says that no gateway is there.
    ///   - begins: called once, when the first attempt has failed.
    package func awaitGateway(within time: LoadTime, begins: () -> Void) {
        let deadline = ContinuousClock.now + .nanoseconds(time.nanoseconds)
        guard !address.takesConnections(within: Self.attemptMilliseconds) else { return }
        begins()
        repeat {
            SocketAddress.pause(milliseconds: Self.pauseMilliseconds)
        } while !address.takesConnections(within: Self.attemptMilliseconds) && .now < deadline
    }
}
