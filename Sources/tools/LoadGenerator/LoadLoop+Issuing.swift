import DequeModule
import EventLoops
import Histogram
import Verification

// From the moment when a request is due to its bytes on the wire.
extension LoadLoop {
    /// Sends all due requests for which connections, devices and challenges are free.
    func pump() {
        while isIssuing {
            let now = MonotonicClock.nanoseconds
            guard now >= startAt else { return }
            let offset = nextDue
            guard issued < countLimit, offset ?? (now - startAt) < pacing.end else {
                return stop()
            }
            let due = offset.map { startAt + $0 } ?? now
            guard due <= now else {
                isBlocked = false
                alarm?.set(nanoseconds: due)
                return
            }
            if let exchange = clients.idle.first, issue(on: exchange, due: due, now) {
                continue
            }
            isBlocked = true
            let waiting = backlog(at: now)
            measurements[.backlogMax] = max(measurements[.backlogMax], waiting)
            measurements.count(in: pacing.stage(at: now - startAt)) {
                $0.backlogMax = max($0.backlogMax, waiting)
            }
            return
        }
    }

    /// Sends the next request; `false` when it needs a part that is not free.
    private func issue(on exchange: LoadExchange, due: UInt64, _ now: UInt64) -> Bool {
        var request = LoadRequest(number: issued, due: due)
        request.stage = pacing.stage(at: due - startAt)
        guard let message = compose(&request, now) else { return false }
        if !isBlocked, pacing.schedule != nil { measurements.lag.record(now - due) }
        measurements.rows[request.sending.rawValue].sent += 1
        measurements.count(in: request.stage) { $0.sent += 1 }
        interval.sent += 1
        issued += 1
        underWay += 1
        request.sentAt = MonotonicClock.nanoseconds
        clients.idle.removeFirst()
        exchange.send(message, for: request)
        return true
    }

    /// Writes a request of the next kind; `nil` when it needs a part that is not free.
    private func compose(_ request: inout LoadRequest, _ now: UInt64) -> Message? {
        let place = place(of: request)
        let kind = plan.options.mix.kind(at: place)
        switch kind {
        case .good: break
        case .missing:
            request.sending = .missing
            return template.message(nil, .missing, content: content(of: request))
        case .unknown:
            request.sending = .unknown
            return template.message(strangers[Int(place % UInt64(strangers.count))], .unknown)
        case .tampered: request.sending = tamperings[Int(place / 7 % UInt64(tamperings.count))]
        case .replayed:
            guard let earlier = replays.any() else { break }
            request.sending = .replayed
            request.bucket = earlier.bucket
            return earlier.message
        case .stale:
            guard let (sending, proof) = nextStale(now) else { break }
            request.sending = sending
            request.bucket = forecast.bucket(of: proof.keyID)
            return template.message(proof, sending)
        }
        guard let device = devices.take(attempts: clients.exchangesMax + 1),
            let message = plan.options.proof == .session
                ? composeBySession(of: device, &request, now)
                : composeSigned(by: device, &request, now)
        else { return nil }
        request.device = device
        // It goes as a good one, since none can be replayed or overtaken yet.
        if kind == .replayed || kind == .stale { measurements[.replaced] += 1 }
        return message
    }

    private func content(of request: LoadRequest) -> Int {
        Int(request.number % UInt64(template.contents.count))
    }

    /// What is not there can't be changed.
    private func checkContent(_ content: Int, of request: inout LoadRequest) {
        if request.sending == .tamperedContent, template.contents[content].plain.isEmpty {
            request.sending = .tamperedSignature
        }
    }

    /// Writes a request with a new assertion.
    private func composeSigned(
        by device: Int,
        _ request: inout LoadRequest,
        _ now: UInt64
    ) -> Message? {
        let order = devices.order(of: device)
        let content = PreSigned.contentIndex(device, order, of: template.contents.count)
        checkContent(content, of: &request)
        var proof: ProofTexts
        if now < preSigned.goodUntil, let signed = preSigned.proof(of: device, number: order) {
            _ = devices.begin(device)
            proof = signed
            let index = plan.fleetIndex(device, loop: number)
            signer.addToken(device: index, content: content, of: template, to: &proof)
        } else {
            var challenge: [UInt8] = []
            if plan.needsChallenges {
                guard let newest = takeChallenge(now) else { return nil }
                challenge = newest
            }
            let counter = devices.begin(device)
            proof = sign(device, ToSign(counter: counter, content: content, challenge: challenge))
        }
        if isReplaying { request.bucket = forecast.bucket(of: proof.keyID) }
        return template.message(proof, request.sending, content: content)
    }

    /// Writes a request that is signed with the device's session. Without a session, writes one
    /// that opens it.
    private func composeBySession(
        of device: Int,
        _ request: inout LoadRequest,
        _ now: UInt64
    ) -> Message? {
        let content = content(of: request)
        checkContent(content, of: &request)
        if let proof = sessions.sign(device: device, content: content, now: now) {
            devices.beginUncounted(device)
            return template.message(proof, request.sending, content: content)
        }
        guard let challenge = takeChallenge(now) else { return nil }
        let order = ToSign(counter: devices.begin(device), content: 0, challenge: challenge)
        let index = plan.fleetIndex(device, loop: number)
        let proof = signer.sign(order, device: index, of: plan.openingTemplate)
        sessions.ask(device, keyID: proof.keyID)
        request.sending = .opening
        return plan.openingTemplate.message(proof, .opening)
    }

    private func sign(_ device: Int, _ order: ToSign) -> ProofTexts {
        signer.sign(order, device: plan.fleetIndex(device, loop: number), of: template)
    }

    private func nextStale(_ now: UInt64) -> (sending: Sending, proof: ProofTexts)? {
        if let aging = stale.aging, aging.expired <= now {
            stale.take(expired: staleProofs(aging.text))
        }
        return stale.next(devices) { device in
            sign(device, ToSign(counter: devices.reservedCounter, content: 0, challenge: []))
        }
    }

    /// Proofs of the reserved devices over a challenge that is invalid, or soon will be.
    func staleProofs(_ challenge: [UInt8]) -> [ProofTexts] {
        let order = ToSign(counter: devices.firstCounter, content: 0, challenge: challenge)
        return (0..<stale.deviceCount).map { sign(devices.count + $0, order) }
    }
}
