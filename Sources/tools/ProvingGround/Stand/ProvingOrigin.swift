import LoopbackSockets

/// The API that the gateway protects: it notes what it runs.
final class ProvingOrigin: Sendable {
    /// The most seconds that something hangs.
    private static let hangMax = 600.0

    private let ledger: ProvingLedger
    let faults: FaultList

    init(_ ledger: ProvingLedger, _ faults: [PlayedFault]) {
        self.ledger = ledger
        self.faults = FaultList(faults)
    }

    func answer(_ request: ServedRequest) -> ServedAnswer? {
        ledger.add(
            SeenExecution(method: request.method, target: request.target, fields: request.fields)
        )
        let fault = faults.strike { fault in
            fault.place.matches(path: request.path)
                && (fault.method == nil || fault.method == request.method)
        }
        let plain = ServedAnswer(
            200,
            fields: [("Content-Type", "text/plain")],
            content: Array("ran\n".utf8)
        )
        guard let fault else { return plain }
        switch fault.deed {
        case .answer: return fault.answer(to: request)
        case .delay: return ledger.pause(seconds: fault.seconds) ? plain : nil
        case .hang:
            ledger.pause(seconds: Self.hangMax)
            return nil
        default: return nil
        }
    }
}
