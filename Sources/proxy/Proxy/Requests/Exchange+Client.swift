import EventLoops
import HTTPWire
import Rules
import Services
import Telemetry
import Verification

// The request's content on its way from the client.
extension Exchange {
    /// Begins to read. First sends `100 Continue` where the client waits for it.
    func readFirstContent() {
        guard let client else { return }
        if !client.hasContent { client.sendContinue() }
        client.awaitContent()
        readContent()
    }

    /// Reads content once, when there is some and it is wanted. Then the event loop's other
    /// connections have their turns.
    func readContent() {
        var hasRead = false
        while flow.takesContent, let client {
            if hasRead { return client.resumeReading() }
            hasRead = !client.hasContent
            let before = client.contentCount
            let read = client.readContent { take($0) }
            proxy.tally.add(.uploadBytes, client.contentCount - before)
            if let key = flow.verdictState.admittedKey { proxy.judge.keyCheck.keep(key) }
            switch read {
            case .some: perform(flow.contentRead(isLast: false))
            case .complete:
                record.uploaded(at: MonotonicClock.nanoseconds)
                perform(flow.contentRead(isLast: true))
            case .none, .stopped, .closed: return
            case .malformed(let reason): return perform(flow.contentMalformed(reason))
            }
        }
    }

    /// Takes a piece; `false` when the request has another turn later.
    private func take(_ piece: Span<UInt8>) -> Bool {
        guard let client else { return false }
        return put(piece, flow.contentReceived(piece.count, isLast: client.isContentComplete))
    }

    private func put(_ piece: Span<UInt8>, _ take: Flow.Take) -> Bool {
        switch take {
        case .collect: call?.collect(piece)
        case .hold: return hold(piece)
        case .append: content.heldBody?.appendUnheld(piece)
        case .skim: content.hash(piece)
        case .send: origin?.append(piece)
        case .sendHashed:
            content.hash(piece)
            origin?.append(piece)
        case .judgeEnd:
            content.hash(piece)
            return put(piece, judgedEnd())
        case .stop(let action):
            perform(action)
            return false
        }
        return true
    }

    /// The limits of content that the rule holds.
    var heldBounds: HeldBody.Bounds {
        guard case .held(_, let memory) = flow.rule.body else {
            preconditionFailure("Exchange: content is held although the rule doesn't")
        }
        return HeldBody.Bounds(
            ledger: proxy.held,
            limits: settings.limits,
            entry: account.entry,
            memoryMax: memory.rawValue,
            folder: settings.options.spillFolder,
            files: proxy.files
        )
    }

    private func hold(_ piece: Span<UInt8>) -> Bool {
        guard let held = content.heldBody else { return false }
        let wasSpilled = held.isSpilled
        do throws(HeldBody.Fault) {
            try held.append(piece)
        } catch {
            if case .failed(let fault) = error { record.note(problem: "spill: \(fault)") }
            return put(piece, flow.holdFailed(error.refusal))
        }
        if held.isSpilled, !wasSpilled { proxy.tally.add(.bodiesSpilled) }
        return true
    }
}

// The response on its way to the client.
extension Exchange {
    /// Reads from the origin once, when the client takes the bytes. Then the event loop's other
    /// connections have their turns.
    func originReadable(_ connection: any OriginStream) {
        guard readOrigin(connection), client?.unsentBytes == 0 else { return }
        connection.resumeReading()
    }

    /// Reads from the origin once, when the client takes the bytes.
    ///
    /// - Returns: whether bytes were read and the response continues.
    func readOrigin(_ connection: any OriginStream) -> Bool {
        guard origin === connection, let client, client.unsentBytes == 0 else { return false }
        let before = record.responseBytes
        connection.inputMax = client.readMax
        let read = connection.receive(for: self)
        proxy.tally.add(.downloadBytes, record.responseBytes - before)
        switch read {
        case .some:
            guard flow.hasResponse else { return true }
            if case .closed = client.flush() { return false }
            watchOrigin()
            return true
        case .complete:
            // RFC 9110 §6.5.1: only for clients that accept trailers.
            client.endContent(flow.leg?.passesTrailers == true ? connection.trailers : nil)
            if case .closed = client.flush() { return false }
            perform(flow.responseEnded())
        case .none, .stopped: break
        case .broke:
            if let failure = connection.tlsFault { side.tlsFailure = failure.reason }
            if flow.hasResponse { client.flush() }
            perform(flow.originBroke(heard(on: connection), retryBudget))
        case .refused: perform(flow.originRefused(retryBudget))
        case .malformed, .violated:
            // The client gets the bytes before the fault.
            if flow.hasResponse { client.flush() }
            record.note(problem: read.fault)
            perform(flow.responseMalformed(.responseMalformed))
        case .tooManyInterim: perform(flow.responseMalformed(.tooManyInterimResponses))
        }
        return false
    }

    func originInterim(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) -> Bool {
        client?.sendInterim(head, bytes)
        return !flow.isOver
    }

    func originResponded(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        rest: Span<UInt8>
    ) -> Bool {
        record.status = head.status
        origin?.waited = Audit(self).originAnswered(at: MonotonicClock.nanoseconds)
        if head.fields.contains(.appAttestDeviceBits) {
            Querying(self).takeDeviceBits(head, bytes)
        }
        switch flow.responseBegan(ResponseKind(head, bytes)) {
        case .relay(let start, let held):
            if case .drop = held { dropContent() }
            if case .early = start { client?.endAfterResponse() }
            let notes = Answering(self).notes(in: head, bytes)
            client?.beginResponse(head, bytes, adding: notes)
            return true
        case .beginTunnel:
            Answering(self).beginTunnel(head, bytes, rest: rest)
            return false
        case let other: preconditionFailure("Exchange: \(other) at the head of a response")
        }
    }

    func originContent(_ piece: Span<UInt8>) {
        record.responseBytes &+= UInt64(piece.count)
        client?.append(piece)
    }
}
