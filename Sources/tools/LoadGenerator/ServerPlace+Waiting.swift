import Dispatch
import Lanes

extension ServerPlace {
    /// How long one attempt to connect may take, and the pause behind it.
    private static let attemptMilliseconds: Int32 = 1_000
    private static let pause = DispatchTimeInterval.milliseconds(50)

    /// Waits until the gateway takes connections: it may be starting just now.
    ///
    /// - Parameters:
    ///   - time: how long; when it is over, the run itself says that no gateway is there.
    ///   - begins: called once, when the first attempt has failed.
    package func awaitGateway(within time: LoadTime, begins: () -> Void) async {
        let deadline = ContinuousClock.now + .nanoseconds(time.nanoseconds)
        guard !address.takesConnections(within: Self.attemptMilliseconds) else { return }
        begins()
        while .now < deadline {
            await Self.pauseOnce()
            if address.takesConnections(within: Self.attemptMilliseconds) { return }
        }
    }

    /// A port that is not open yet gives no event to wait for.
    private static func pauseOnce() async {
        let queue = DispatchQueue(label: "portcullis.load.wait")
        await withCheckedContinuation { continuation in
            queue.asyncAfter(deadline: .now() + pause) { continuation.resume() }
        }
    }
}
