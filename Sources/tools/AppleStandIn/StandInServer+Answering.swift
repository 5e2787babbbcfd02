import Cryptography
import EventLoops
import OutboundCalls

extension StandInServer {
    /// Decides about a request, and records it.
    func answer(
        _ request: StandInRequest,
        at host: AppleHost,
        tick: UInt64
    ) -> (play: StandInPlay, answer: StandInAnswer) {
        let time = now()
        let service = AppleService.allCases.first {
            $0.family == host.family && $0.path == request.path
        }
        return change { state in
            let token = state.tokens.token(request["Authorization"], host.family)
            let play = service.map { state.plays[$0, default: StandInPlays()].take() } ?? .proper
            let answer = Self.answer(request, host, service, token, play, &state, time)
            state.calls.add(
                StandInCalls.Sighting(
                    host: host,
                    path: request.path,
                    service: service,
                    authorization: request["Authorization"],
                    contentType: request["Content-Type"],
                    time: time,
                    tick: tick,
                    status: play.isSilent ? nil : answer.status
                ),
                token: token
            )
            return (play, answer)
        }
    }

    private static func answer(
        _ request: StandInRequest,
        _ host: AppleHost,
        _ service: AppleService?,
        _ token: String?,
        _ play: StandInPlay,
        _ state: inout State,
        _ time: UnixTime
    ) -> StandInAnswer {
        if let answer = play.answer { return answer }
        guard let service else { return StandInAnswer(404, "Not Found") }
        guard request.method == "POST" else { return StandInAnswer(405, "Method Not Allowed") }
        guard let token else {
            return StandInAnswer(
                service.family == .receipts ? 401 : 400,
                "Missing or badly formatted authorization token"
            )
        }
        guard state.tokens.accepts(token, at: time) else {
            return StandInAnswer(401, "Unable to verify authorization token")
        }
        guard service == .receipts else {
            return state.bits.answer(service, request.body, at: host, time)
        }
        return state.receipts.answer(request.body, at: host, play, time)
    }
}

extension StandInPlay {
    /// Whether the client gets no HTTP answer.
    fileprivate var isSilent: Bool {
        switch self {
        case .hang, .garbage, .cut: true
        case .proper, .slow, .drip, .status, .long, .redirect, .receipt, .receiptOfAttestation,
            .receiptAsSent:
            false
        }
    }
}
