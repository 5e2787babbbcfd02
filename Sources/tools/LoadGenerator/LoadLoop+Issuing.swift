import DequeModule
import EventLoops
import Histogram
import Verification

// From the moment when a request is due to its bytes on the wire.
extension LoadLoop {
    /// Sends all due requests for which connections, devices and challenges are free.
    func pump() {
        guard isIssuing else { return }
        while isIssuing {
            let now = MonotonicClock.nanoseconds
            guard now >= startAt else { return }
            let offset = pacing.due(issued, loop: number, of: loopCount)
            guard issued < countLimit, offset ?? (now - startAt) < pacing.end else {
                isIssuing = false
                break
            }
            let due = offset.map { startAt + $0 } ?? now
            guard due <= now else {
                isBlocked = false
                alarm?.set(nanoseconds: due)
                return
            }
            guard let connection = idle.popFirst() else {
                isBlocked = true
                noteBacklog(now)
                return
            }
            guard issue(on: connection, due: due, now) else {
                idle.prepend(connection)
                isBlocked = true
                noteBacklog(now)
                return
            }
        }
        finishIfDone()
    }

    private func noteBacklog(_ now: UInt64) {
        measurements.backlogMax = max(measurements.backlogMax, backlog(at: now))
    }

    /// Sends the next request; `false` when it needs a part that is not free.
    private func issue(on connection: LoadConnection, due: UInt64, _ now: UInt64) -> Bool {
        var request = LoadRequest(number: issued, due: due)
        guard compose(&request, into: &connection.message, now) else { return false }
        if !isBlocked, pacing.rate != nil { measurements.lag.record(now - due) }
        measurements.rows[request.sending.rawValue].sent += 1
        interval.sent += 1
        issued += 1
        underWay += 1
        request.sentAt = MonotonicClock.nanoseconds
        connection.request = request
        connection.keepsContent = request.sending == .opening
        connection.send(
            template.body(of: connection.message),
            timeout: plan.options.responseTimeout
        )
        return true
    }

    /// Writes a request of the next kind.
    private func compose(
        _ request: inout LoadRequest,
        into message: inout Message,
        _ now: UInt64
    ) -> Bool {
        let content = Int(request.number % UInt64(template.contents.count))
        // Event loops take turns with the numbers of the run.
        let place = request.number * UInt64(loopCount) + UInt64(number)
        switch plan.options.mix.kind(at: place) {
        case .good: break
        case .missing:
            request.sending = .missing
            template.write(nil, .missing, content: content, into: &message)
            return true
        case .replayed:
            guard let earlier = replays.any() else {
                return composeInstead(&request, message: &message, now: now)
            }
            request.sending = .replayed
            (message, request.bucket) = earlier
            return true
        case .tampered: request.sending = tamperings[Int(place / 7 % UInt64(tamperings.count))]
        case .stale:
            guard let (sending, proof) = nextStale(now) else {
                return composeInstead(&request, message: &message, now: now)
            }
            request.sending = sending
            request.bucket = forecast.bucket(of: proof.keyID)
            template.write(proof, sending, content: 0, into: &message)
            return true
        case .unknown:
            request.sending = .unknown
            let proof = strangers[Int(place % UInt64(strangers.count))]
            template.write(proof, .unknown, content: 0, into: &message)
            return true
        }
        return composeFresh(&request, into: &message, now)
    }

    /// Writes a good request instead, since none can be replayed or overtaken yet.
    private func composeInstead(
        _ request: inout LoadRequest,
        message: inout Message,
        now: UInt64
    ) -> Bool {
        guard composeFresh(&request, into: &message, now) else { return false }
        measurements.replacedCount += 1
        return true
    }

    /// Writes a request with a new assertion.
    private func composeFresh(
        _ request: inout LoadRequest,
        into message: inout Message,
        _ now: UInt64
    ) -> Bool {
        if case .session = plan.options.proof {
            return composeBySession(&request, into: &message, now)
        }
        guard let device = devices.take(attempts: connectionCount + 1) else { return false }
        let order = devices.order(of: device)
        let content = PreSigned.contentIndex(device, order, of: template.contents.count)
        if request.sending == .tamperedContent, template.contents[content].plain.isEmpty {
            request.sending = .tamperedSignature
        }
        if now < preSignedUntil,
            preSigned.copy(
                device: device,
                number: order,
                hasChallenge: needsChallenge,
                into: &proof
            )
        {
            _ = devices.begin(device)
            addToken(device, content, to: &proof)
        } else {
            var challenge: [UInt8] = []
            if needsChallenge {
                let newest = challenges.take(now: now)
                if challenges.count < Self.challengeStock { callForChallenges() }
                guard let newest else { return false }
                challenge = newest
            }
            sign(device, devices.begin(device), content, challenge, into: &proof)
        }
        request.device = device
        if isReplaying { request.bucket = forecast.bucket(of: proof.keyID) }
        template.write(proof, request.sending, content: content, into: &message)
        return true
    }

    private func sign(
        _ device: Int,
        _ counter: UInt32,
        _ content: Int,
        _ challenge: [UInt8],
        into proof: inout ProofTexts
    ) {
        let start = MonotonicClock.nanoseconds
        signer.sign(
            device: plan.fleetIndex(device, loop: number),
            counter: counter,
            content: content,
            challenge: challenge,
            into: &proof
        )
        signer.note(nanoseconds: MonotonicClock.nanoseconds - start)
    }

    private func addToken(_ device: Int, _ content: Int, to proof: inout ProofTexts) {
        guard plan.mint != nil else { return }
        signer.addToken(device: plan.fleetIndex(device, loop: number), content: content, to: &proof)
    }

    private func nextStale(_ now: UInt64) -> (sending: Sending, proof: ProofTexts)? {
        if let aging = stale.aging, aging.expired <= now {
            stale.take(expired: staleProofs(aging.text))
        }
        return stale.next(devices) { device in
            var proof = ProofTexts()
            sign(device, devices.reservedCounter, 0, [], into: &proof)
            return proof
        }
    }

    /// Proofs of the reserved devices over a challenge that is invalid, or soon will be.
    func staleProofs(_ challenge: [UInt8]) -> [ProofTexts] {
        (0..<stale.deviceCount).map { index in
            var proof = ProofTexts()
            sign(devices.count + index, devices.firstCounter, 0, challenge, into: &proof)
            return proof
        }
    }
}
