import EventLoops
import Verification

// Requests that are signed with a session, and those that open one.
extension LoadLoop {
    /// Writes a request that is signed with the device's session. Without a session, writes one
    /// that opens it.
    func composeBySession(
        _ request: inout LoadRequest,
        into message: inout Message,
        _ now: UInt64
    ) -> Bool {
        guard let device = devices.take(attempts: connectionCount + 1) else { return false }
        let content = Int(request.number % UInt64(template.contents.count))
        if request.sending == .tamperedContent, template.contents[content].plain.isEmpty {
            request.sending = .tamperedSignature
        }
        let start = MonotonicClock.nanoseconds
        guard sessions.sign(device: device, content: content, now: now, into: &sessionTexts) else {
            return composeOpening(device, &request, into: &message, now)
        }
        sessions.note(nanoseconds: MonotonicClock.nanoseconds - start)
        devices.beginUncounted(device)
        request.device = device
        template.write(sessionTexts, request.sending, content: content, into: &message)
        return true
    }

    private func composeOpening(
        _ device: Int,
        _ request: inout LoadRequest,
        into message: inout Message,
        _ now: UInt64
    ) -> Bool {
        let newest = challenges.take(now: now)
        if challenges.count < Self.challengeStock { callForChallenges() }
        guard let newest else { return false }
        let start = MonotonicClock.nanoseconds
        openingSigner.sign(
            device: plan.fleetIndex(device, loop: number),
            counter: devices.begin(device),
            content: 0,
            challenge: newest,
            into: &proof
        )
        openingSigner.note(nanoseconds: MonotonicClock.nanoseconds - start)
        sessions.ask(device, keyID: proof.keyID)
        request.sending = .opening
        request.device = device
        plan.openingTemplate.write(proof, .opening, content: 0, into: &message)
        return true
    }

    /// Keeps an opened session, and forgets one that the gateway no longer knows.
    func noteSession(of device: Int, _ sending: Sending, _ answer: Answer, _ now: UInt64) {
        guard case .session = plan.options.proof else { return }
        if sending == .opening, answer.status == 201 {
            sessions.open(answer.content, of: device, now: now)
        } else if saysEnded(answer) {
            sessions.drop(device)
        }
    }

    /// Whether the session of the request has ended. A replayed request may belong to such a
    /// session.
    func saysEnded(_ answer: Answer) -> Bool {
        guard case .session = plan.options.proof, answer.status == 401, let place = answer.reason
        else { return false }
        let reason = answer.content[place]
        return Self.endings.contains { reason.elementsEqual($0) }
    }

    private static let endings = [Refusal.sessionUnknown, .sessionExpired].map {
        Array($0.rawValue.utf8)
    }
}
