import EventLoops
import HTTPWire

// A response on its way from the server.
extension HTTP1OriginStream {
    var hasReceivedNothing: Bool { progress == .head && inbox.isEmpty && interimCount == 0 }

    var trailers: TrailerSection? { body.trailers }

    func receive(for owner: any OriginStreamOwner) -> OriginRead {
        let found = take(for: owner)
        switch found {
        case .some, .none, .complete, .stopped, .refused, .violated: break
        // It is no failure of the server if an idle connection ends at the moment it is taken.
        case .broke: if !isReused || !hasReceivedNothing { server.failed(.closed, on: loop) }
        case .malformed, .tooManyInterim: server.failed(.malformed, on: loop)
        }
        return found
    }

    private func take(for owner: any OriginStreamOwner) -> OriginRead {
        switch read() {
        case .bytes(let bytes):
            switch progress {
            case .head:
                if inbox.isEmpty { return takeHead(bytes.span, owner) }
                inbox.append(contentsOf: bytes)
                let all = inbox
                return takeHead(all.span, owner)
            case .content: return takeContent(bytes.span, owner)
            case .complete, .broken: return .broke
            }
        case .wouldBlock: return .none
        case .ended: return ended()
        case .failed(let error):
            // With TLS 1.3 a server refuses a client certificate after the handshake (RFC 8446
            // §4.4.2.4), by an alert that is read here.
            if case .tls(let failure) = error { tlsFault = failure }
            isPersistent = false
            return .broke
        }
    }

    /// The server has ended its direction.
    private func ended() -> OriginRead {
        isPersistent = false
        guard progress == .content else { return .broke }
        do throws(Malformed) {
            try body.close()
        } catch {
            // RFC 9112 §8: an incomplete response must not look like a whole one.
            progress = .broken
            return .broke
        }
        progress = .complete
        return .complete
    }

    /// Looks for a head; after an interim one, for the next.
    private func takeHead(_ bytes: Span<UInt8>, _ owner: any OriginStreamOwner) -> OriginRead {
        var start = 0
        let heads = host.heads
        do throws(Malformed) {
            while let range = try scanner.next(
                in: bytes,
                from: &start,
                limits: limits.head,
                keeping: &inbox
            ) {
                let head = bytes.extracting(range)
                try heads.response.read(
                    head,
                    to: method,
                    upgradeSent: asksUpgrade,
                    limits: limits.head
                )
                guard heads.response.isInterim else {
                    inbox = []
                    let rest = bytes.extracting(droppingFirst: start)
                    return takeResponse(heads.response, head, rest: rest, for: owner)
                }
                interimCount += 1
                guard interimCount <= limits.interimMax else { return .tooManyInterim }
                guard owner.originInterim(heads.response, head) else { return .stopped }
            }
            return .some
        } catch {
            progress = .broken
            return .malformed(error.reason)
        }
    }

    private func takeResponse(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        rest: Span<UInt8>,
        for owner: any OriginStreamOwner
    ) -> OriginRead {
        progress = .content
        body = BodyReader(head.framing, limits: limits.head)
        isPersistent = head.isPersistent
        server.responded(status: head.status, on: loop)
        guard owner.originResponded(head, bytes, rest: rest) else { return .stopped }
        return takeContent(rest, owner)
    }

    private func takeContent(_ bytes: Span<UInt8>, _ owner: any OriginStreamOwner) -> OriginRead {
        var position = 0
        do throws(Malformed) {
            reading: while true {
                switch try body.read(bytes, from: &position) {
                case .content(let range): owner.originContent(bytes.extracting(range))
                case .needMore: return .some
                case .finished: break reading
                }
            }
        } catch {
            progress = .broken
            return .malformed(error.reason)
        }
        progress = .complete
        // RFC 9112 §6.3 ¶2: bytes beyond the announced length belong to no response.
        if position < bytes.count { isPersistent = false }
        return .complete
    }
}
