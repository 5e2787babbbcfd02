import AppAttest
import ByteCoding
import ClientStreams
import Cryptography
import HTTPWire
import KeyStore
import Origins
import Rules
import Services
import Verification

// The head for the origin.
extension Exchange {
    /// The place of the rule's origin among the settings and the pools.
    var originPlace: Int {
        guard let origin = flow.rule.origin else {
            preconditionFailure("Exchange: a denied request is not forwarded")
        }
        return origin.rawValue
    }

    /// Writes the head for the origin while the client's bytes are there. Verdict fields follow
    /// with ``writeVerdict()``. The framing is `nil` while it is not known.
    func writeOriginHead(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        framing: BodyFraming?
    ) {
        guard let client else { return }
        let rule = flow.rule
        var options = HeadWriter.RequestOptions()
        // The proof is the gateway's business. A rule with field names of its own is for an app
        // whose origin may still read them.
        if rule.mode != .off { options.dropping.formUnion(FieldKindSet.proof) }
        let place = originPlace
        let kept = settings.origins[place].keptFields
        // RFC 9112 §3.2: what goes out as HTTP/1.1 has a Host, also for HTTP/1.0 clients without
        // one.
        let isNameless = head.authority.isEmpty
        let host =
            settings.origins[place].host
            ?? (isNameless ? Array(settings.origins[place].name.utf8) : nil)
        if host != nil { options.dropping.insert(FieldKindSet(.host)) }
        let isProxy = client.peerIsTrusted
        options.keeping = isProxy ? kept.fromProxies : kept.fromAll
        if rule.mode != .off { options.guarding = rule.guardedFields }
        options.dropping.subtract(record.carried)
        options.framing = framing ?? .none
        options.closes = flow.facts.asks(.isolation)
        options.forwardsUpgrade = flow.facts.asks(.upgrade)
        options.acceptsTrailers = flow.facts.asks(.trailers)
        options.cameByHTTP2 = client.spoken == .http2
        HeadWriter.beginRequest(head, octets, options, into: &originHead)
        if let host { HeadWriter.field("Host", host, into: &originHead) }
        writeIdentity(keepsTrace: kept.keepsTrace && head.fields.contains(.traceparent))
        client.writeProvenance(
            head,
            octets,
            proxy.scratch.address,
            keepsHost: isProxy && kept.keepsHost && head.fields.contains(.xForwardedHost),
            into: &originHead
        )
    }

    /// Tells the origin the names that it does not get as they came.
    ///
    /// - keepsTrace: the origin gets the client's traceparent.
    func writeIdentity(keepsTrace: Bool) {
        if !record.carried.contains(.requestID) {
            HeadWriter.requestID(record.id, into: &originHead)
        }
        guard let trace = record.trace, !record.carried.contains(.traceparent), !keepsTrace
        else { return }
        HeadWriter.traceParent(
            trace,
            span: proxy.ids.next(),
            isSampled: settings.traces == .beginSampled,
            into: &originHead
        )
    }

    /// Tells the origin the verdict. Every copy that the client sent was dropped.
    func writeVerdict() {
        guard let (ruling, _) = flow.judgement.verdict else { return }
        HeadWriter.field("App-Attest-Verdict", text: ruling.verdict.word, into: &originHead)
        let reason = ruling.verdict.reason
        if !reason.isEmpty {
            HeadWriter.field("App-Attest-Reason", text: reason, into: &originHead)
        }
        if let bits = ruling.deviceBits {
            HeadWriter.field("App-Attest-Device-Bits", text: bits.fieldText, into: &originHead)
        }
        // The key has signed the request, whatever else speaks against it.
        if ruling.signer != nil, let context = ruling.context {
            HeadWriter.field("App-Attest-Context", Base64.encode(context.span), into: &originHead)
        }
        if let risk = ruling.risk {
            HeadWriter.field("App-Attest-Risk", text: risk.text, into: &originHead)
        }
        guard ruling.verdict == .pass, let keyID = ruling.keyID,
            let environment = ruling.environment?.rawValue
        else { return }
        let text = Base64.encode(keyID.digest.bytes.span)
        HeadWriter.field("App-Attest-Key-Id", text, into: &originHead)
        HeadWriter.field("App-Attest-App-Id", text: ruling.appID, into: &originHead)
        HeadWriter.field("App-Attest-Environment", text: environment, into: &originHead)
        if let proof = ruling.proof {
            HeadWriter.field("App-Attest-Proof", text: proof.rawValue, into: &originHead)
        }
    }

    /// Ends the head, and connects to a server.
    func forward() -> Flow.Action {
        HeadWriter.endHead(into: &originHead)
        // A request that is sent once more is sent with it.
        if case .withHead(let bytes) = content {
            originHead += bytes
            content = .nothing
        }
        return .connect(.first)
    }

    /// How the content goes to the origin.
    var originFraming: BodyFraming {
        guard let body = content.heldBody, !flow.isReleased else { return flow.facts.framing }
        return .length(UInt64(body.count))
    }
}

// The head for another proxy, which asks before it forwards the request itself.
extension Exchange {
    /// Tells the proxy that it may forward the request: with what the origin is to be told, and
    /// what the client is.
    func allowance() -> LocalResponse {
        writeVerdict()
        if case .decision(.extAuthz) = flow.purpose { nameRemoved() }
        return LocalResponse(allowing: originHead, notes: notesToClient)
    }

    /// The fields that origins get from the gateway alone, and those of a proof by session. No rule
    /// lets a client's own pass.
    private static let gatewayFields: [StaticString] = [
        "App-Attest-Verdict", "App-Attest-Reason", "App-Attest-Key-Id", "App-Attest-App-Id",
        "App-Attest-Environment", "App-Attest-Proof", "App-Attest-Risk", "App-Attest-Context",
        "App-Attest-Device-Bits", "App-Attest-Device-Token", "App-Attest-Session",
        "App-Attest-Sequence", "App-Attest-Signature",
    ]
    /// Those of a proof, which an application may read where a rule verifies nothing.
    private static let proofFields: [StaticString] = [
        "App-Attest-Assertion", "App-Attest-Challenge", "App-Attest-Unsupported",
    ]

    /// Envoy removes the fields that this one lists. It replaces those of the client that the
    /// answer has too; without this field it would pass the others on.
    private func nameRemoved() {
        var names = Self.gatewayFields
        if flow.rule.mode != .off { names += Self.proofFields }
        let removed = names.map(\.description).filter { !hasLine($0) }
        let text = removed.joined(separator: ", ")
        HeadWriter.field("X-Envoy-Auth-Headers-To-Remove", text: text, into: &originHead)
    }

    /// Whether a field of this name was written for the origin.
    private func hasLine(_ name: String) -> Bool {
        originHead.split(separator: UInt8(ascii: "\n")).contains {
            $0.starts(with: (name + ":").utf8)
        }
    }
}
