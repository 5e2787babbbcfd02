import Parties

/// The calls to all other parties, as the end of the gateway sees them.
protocol EndingCalls: Sendable {
    /// Begins no call by itself any more: the gateway ends, or its successor makes them.
    func endAsking()
    /// Waits until the parties have what was promised, at most for a time; `done` gets the number
    /// of changes that they do not have.
    func finish(within time: Duration, _ done: @escaping @Sendable (_ changesLeft: Int) -> Void)
    /// Ends the calls under way; `done` is called once, soon.
    func stop(_ done: @escaping @Sendable () -> Void)
}

struct OutsideCalls: EndingCalls {
    let apple: AppleOperations
    let google: GoogleOperations
    let parties: RequestParties

    func endAsking() {
        apple.endRenewing()
        google.end()
        parties.proofs.end()
    }

    func finish(within time: Duration, _ done: @escaping @Sendable (Int) -> Void) {
        apple.devices.finish(within: min(time, DeviceCheckClient.finishTime), done)
    }

    func stop(_ done: @escaping @Sendable () -> Void) {
        apple.calls.stop { [parties] in
            parties.proofs.stop { [parties] in parties.https.stop(done) }
        }
    }
}
