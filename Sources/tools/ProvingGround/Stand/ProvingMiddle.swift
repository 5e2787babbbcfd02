import Encodings
import LoopbackSockets
import Services
import Verification

/// What stands between client and gateway: it notes each request, and misbehaves as the case says.
final class ProvingMiddle: Sendable {
    /// Seconds that it waits for the gateway.
    private static let patience = 120
    /// The most seconds that something hangs.
    private static let hangMax = 600.0

    private let gateway: GatewayProcess
    private let ledger: ProvingLedger
    let faults: FaultList

    init(_ gateway: GatewayProcess, _ ledger: ProvingLedger, faults: [PlayedFault]) {
        (self.gateway, self.ledger) = (gateway, ledger)
        self.faults = FaultList(faults)
    }

    /// The answer to a client; `nil` where the connection ends without one.
    func answer(_ request: ServedRequest) -> ServedAnswer? {
        let seen = SeenRequest(
            method: request.method,
            target: request.target,
            fields: request.fields,
            place: CalledPlace(path: request.path)
        )
        let number = ledger.add(seen)
        let fault = faults.strike { fault in
            fault.place.matches(path: request.path)
                && (fault.method == nil || fault.method == request.method)
                && (fault.hasProof == nil
                    || fault.hasProof == (seen.hasAssertion || seen.hasSession))
        }
        guard let fault else {
            defer { ledger.settled() }
            return forward(request, number)
        }
        ledger.strikes(number, fault.deed)
        if fault.deed == .hang {
            ledger.settled()
            ledger.pause(seconds: Self.hangMax)
            return nil
        }
        defer { ledger.settled() }
        return answer(request, number, striking: fault)
    }

    private func answer(
        _ request: ServedRequest,
        _ number: Int,
        striking fault: PlayedFault
    ) -> ServedAnswer? {
        switch fault.deed {
        case .hang, .cut, .fail: return nil
        case .answer:
            if fault.runs { _ = forward(request, number) }
            return fault.answer(to: request)
        case .refuse: return refused(request, number, by: fault)
        case .loseAnswer:
            _ = forward(request, number)
            return nil
        case .twice:
            _ = forward(request, number)
            return forward(request, number)
        case .delay:
            return ledger.pause(seconds: fault.seconds) ? forward(request, number) : nil
        case .stripRequest:
            let names = Set(fault.names.map { $0.lowercased() })
            let kept = request.fields.filter { !names.contains($0.name.lowercased()) }
            return forward(request, number, fields: kept)
        case .stripAnswer, .setAnswer:
            guard var answer = forward(request, number) else { return nil }
            let names = Set((fault.names + fault.fields.map(\.name)).map { $0.lowercased() })
            answer.fields.removeAll { names.contains($0.name.lowercased()) }
            answer.fields += fault.fields
            return answer
        case .tamper:
            return forward(request, number, target: request.target + Self.tampering(request))
        case .restart, .wipe:
            guard (try? gateway.restart(wipingStore: fault.deed == .wipe)) != nil else {
                return nil
            }
            return forward(request, number)
        }
    }

    /// What the gateway writes where it refuses, with a challenge of its own.
    private func refused(
        _ request: ServedRequest,
        _ number: Int,
        by fault: PlayedFault
    ) -> ServedAnswer? {
        guard let refusal = Refusal(rawValue: fault.reason) else { return nil }
        let isEndpoint = CalledPlace(path: request.path) != .app
        let outcome: LocalOutcome = isEndpoint ? .notEnrolled(refusal) : .refused(refusal)
        var details = LocalResponse.Details(waitSeconds: max(1, Int(fault.seconds)))
        if outcome.row.companion == .authenticate {
            details.signing = #"sign="method target body challenge", counter="64""#
        }
        if outcome.row.nextStep == .signAgain { details.challenge = challenge() }
        let response = LocalResponse(outcome, details)
        ledger.answered(number, response.status, reason: fault.reason)
        let fields = response.fields.map { (name: $0.name, value: $0.value) }
        let type = (name: "Content-Type", value: "application/problem+json")
        return ServedAnswer(response.status, fields: [type] + fields, content: response.content)
    }

    /// A challenge that the gateway gives, unseen by the ledger: as an app has it from its own
    /// server.
    func challenge() -> String? {
        let path = CalledPlace.endpoints + "/challenges"
        let answer = try? Socket.answer(
            to: ServedRequest(method: "POST", target: path, fields: [("Host", "gateway")]),
            from: gateway.port,
            within: Self.patience
        )
        return answer.flatMap { answer in
            JSONPointer("/challenges/0")?.string(in: answer.content.span)
                .map { String(decoding: $0, as: UTF8.self) }
        }
    }

    private static func tampering(_ request: ServedRequest) -> String {
        request.target.contains("?") ? "&tampered" : "?tampered"
    }

    /// Asks the gateway; `nil` where it does not answer.
    private func forward(
        _ request: ServedRequest,
        _ number: Int,
        target: String? = nil,
        fields: [(name: String, value: String)]? = nil
    ) -> ServedAnswer? {
        var sent = request
        if let target { sent.target = target }
        if let fields { sent.fields = fields }
        let asked = try? Socket.answer(to: sent, from: gateway.port, within: Self.patience)
        guard let answer = asked else { return nil }
        let reason = answer["App-Attest-Error"].map { String($0.prefix { $0 != ";" }) }
        ledger.answered(number, answer.status, reason: reason)
        return answer
    }
}
