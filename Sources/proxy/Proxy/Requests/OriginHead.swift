import AppAttest
import Cryptography
import Encodings
import HTTPWire
import KeyStore
import Rules
import Verification

/// The head that an origin gets instead of the client's, or the fields that another proxy gets
/// which asks before it forwards the request itself.
struct OriginHead {
    /// Memory that the event loop lends.
    var bytes: [UInt8]

    /// Whether the framing follows, since the content is not known yet.
    private var awaitsFraming = false

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// Writes the head while the client's bytes are there, all but what the verdict and held
    /// content decide.
    mutating func begin(
        _ head: borrowing RequestHead,
        _ source: Span<UInt8>,
        for exchange: ExchangeState
    ) {
        let rule = exchange.flow.rule
        let facts = exchange.flow.facts
        let place = exchange.originPlace
        let origins = exchange.settings.origins
        var options = HeadWriter.RequestOptions()
        switch rule.mode {
        case .off: break
        case .observe, .enforce, .deny:
            // Only the gateway reads the proof. A rule with its own field names is for an app whose
            // origin may still read them.
            options.dropping.formUnion(FieldKindSet.proof)
            options.named.guarding = rule.guardedFields
        }
        // RFC 9112 §3.2: an HTTP/1.1 request has a Host, also if an HTTP/1.0 client sent none.
        let isNameless = head.authority.isEmpty
        let host = origins[place].host ?? (isNameless ? Array(origins[place].name.utf8) : nil)
        if host != nil { options.dropping.insert(FieldKindSet(.host)) }
        let isProxy = exchange.peer.isTrusted
        options.named.keeping =
            isProxy ? origins[place].keptFields.fromProxies : origins[place].keptFields.fromAll
        options.dropping.subtract(exchange.record.carried)
        if case .unjudged = exchange.content { awaitsFraming = true }
        options.framing = awaitsFraming ? .none : facts.framing
        options.closes = facts.asks(.isolation)
        options.forwardsUpgrade = facts.asks(.upgrade)
        options.acceptsTrailers = facts.asks(.trailers)
        options.cameByHTTP2 = exchange.record.spoken == .http2
        HeadWriter.beginRequest(head, source, options: options, into: &bytes)
        if let host { HeadWriter.field("Host", host, into: &bytes) }
        let keepsTrace = origins[place].keptFields.keepsTrace
        name(exchange, keepsTrace: keepsTrace && head.fields.contains(.traceparent))
        let keepsHost = isProxy && origins[place].keptFields.keepsHost
        exchange.peer.provenance.write(
            head,
            source,
            from: exchange.proxy.scratch.address,
            keepsHost: keepsHost && head.fields.contains(.xForwardedHost),
            into: &bytes
        )
    }

    /// Writes the names of the request that the origin does not get from the client.
    ///
    /// - keepsTrace: the origin gets the client's traceparent.
    private mutating func name(_ exchange: ExchangeState, keepsTrace: Bool) {
        let carried = exchange.record.carried
        if !carried.contains(.requestID) { HeadWriter.requestID(exchange.record.id, into: &bytes) }
        guard let trace = exchange.record.trace, !carried.contains(.traceparent), !keepsTrace
        else { return }
        if let spans = exchange.record.spans {
            return HeadWriter.traceParent(spans.context, into: &bytes)
        }
        let span = SpanContext(
            trace,
            span: exchange.proxy.ids.nextSpan(),
            isSampled: exchange.settings.options.traces == .beginSampled
        )
        HeadWriter.traceParent(span, into: &bytes)
    }

    /// Ends the head: framing of held content, the verdict, and content that came with the head. A
    /// retried request is sent with that.
    mutating func end(for exchange: ExchangeState) {
        if awaitsFraming { HeadWriter.framing(exchange.framingForOrigin, into: &bytes) }
        tellVerdict(for: exchange)
        HeadWriter.endHead(into: &bytes)
        bytes += exchange.content.takeArrived()
    }

    /// Writes the verdict, for the origin or the proxy that has asked. All copies from the client
    /// were dropped.
    mutating func tellVerdict(for exchange: ExchangeState) {
        if let given = exchange.flow.verdictState.given { tell(given.verdict, for: exchange) }
    }

    private mutating func tell(_ verdict: Verdict, for exchange: ExchangeState) {
        if let signer = exchange.settings.options.verdictSigner, let line = exchange.record.line {
            var subject = VerdictSigner.Request(
                id: exchange.record.id.text,
                host: line.host,
                method: line.method,
                target: line.target
            )
            subject.rule = exchange.flow.rule.id
            subject.origin = exchange.originPlace
            subject.content = exchange.signedContent(verdict)
            let token = signer.token(verdict, subject, at: exchange.proxy.wallSeconds)
            HeadWriter.field("App-Attest-Verdict-Token", token, into: &bytes)
        }
        HeadWriter.field("App-Attest-Verdict", text: verdict.outcome.word, into: &bytes)
        let reason = verdict.outcome.reason
        if !reason.isEmpty { HeadWriter.field("App-Attest-Reason", text: reason, into: &bytes) }
        if let bits = verdict.deviceBits {
            HeadWriter.field("App-Attest-Device-Bits", text: bits.fieldText, into: &bytes)
        }
        // The key has signed the request, even if another check fails.
        if verdict.signer != nil, let context = verdict.context {
            HeadWriter.field("App-Attest-Context", Base64.encode(context.span), into: &bytes)
        }
        if let risk = verdict.risk {
            HeadWriter.field("App-Attest-Risk", text: risk.text, into: &bytes)
        }
        if let note = verdict.integrity {
            HeadWriter.field("App-Attest-Integrity", text: note.text, into: &bytes)
        }
        guard verdict.outcome == .pass else { return }
        if let taken = verdict.takenProofs {
            HeadWriter.field("App-Attest-Proof", text: taken, into: &bytes)
        }
        guard let keyID = verdict.keyID, let environment = verdict.environment?.rawValue else {
            return
        }
        let text = Base64.encode(keyID.digest.bytes.span)
        HeadWriter.field("App-Attest-Key-Id", text, into: &bytes)
        HeadWriter.field("App-Attest-App-Id", text: verdict.appID, into: &bytes)
        HeadWriter.field("App-Attest-Environment", text: environment, into: &bytes)
    }

    // MARK: For another proxy

    /// The fields that origins get only from the gateway, and those of a proof by session. No rule
    /// forwards a client's own.
    private static let gatewayFields: [StaticString] = [
        "App-Attest-Verdict", "App-Attest-Reason", "App-Attest-Key-Id", "App-Attest-App-Id",
        "App-Attest-Environment", "App-Attest-Proof", "App-Attest-Risk", "App-Attest-Context",
        "App-Attest-Device-Bits", "App-Attest-Device-Token", "App-Attest-Integrity",
        "App-Attest-Integrity-Token", "App-Attest-Session",
        "App-Attest-Sequence", "App-Attest-Signature", "App-Attest-Verdict-Token",
    ]
    /// The fields of a proof. An application may read them where a rule verifies nothing.
    private static let proofFields: [StaticString] = [
        "App-Attest-Assertion", "App-Attest-Challenge", "App-Attest-Unsupported",
    ]

    /// Envoy removes the fields that this one lists. It replaces the client's fields that are also
    /// in the answer; without this field it would forward the others.
    mutating func nameRemoved(for exchange: ExchangeState) {
        let isJudged = exchange.flow.rule.mode != .off
        let names = Self.gatewayFields + (isJudged ? Self.proofFields : [])
        let kept = exchange.settings.origins[exchange.originPlace].keptFields.fromProxies
        let misleading = (exchange.client?.asked?.misleading ?? []).filter { name in
            let bytes = Array(name.utf8)
            return !kept.contains(bytes.span, 0..<bytes.count)
        }
        let removed = names.map(\.description).filter { !hasLine($0) } + misleading
        let text = removed.joined(separator: ", ")
        HeadWriter.field("X-Envoy-Auth-Headers-To-Remove", text: text, into: &bytes)
    }

    /// Whether a field of this name was written.
    private func hasLine(_ name: String) -> Bool {
        bytes.split(separator: UInt8(ascii: "\n")).contains {
            $0.starts(with: (name + ":").utf8)
        }
    }
}

extension ExchangeState {
    /// Writes the head for the origin while the client's is there, if the request can go to one.
    func writeHead(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
        guard case .relay = flow.purpose, !flow.isOver else { return }
        originHead.begin(head, bytes, for: self)
    }

    /// The digest of content that was verified; `nil` for any other, which may not even be here.
    fileprivate func signedContent(_ verdict: Verdict) -> SHA256Digest? {
        // A token in the place of a signature says nothing about the content.
        guard flow.rule.signsContent, verdict.outcome == .pass, verdict.signer != nil else {
            return nil
        }
        // Streamed content that has another digest does not reach the origin whole.
        if let expected = verdict.expectedDigest { return expected }
        // What came whole with the head is in memory, and no piece of it was appended.
        if let held = content.heldBody, held.isSpilled { return held.digest() }
        return SHA256.digest(of: content.arrived)
    }
}
