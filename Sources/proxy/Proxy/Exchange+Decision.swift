import ClientStreams
import HTTPWire
import RequestFlow
import Rules
import Services
import Telemetry

/// Whether a request is what its client wants, or what another proxy asks about.
enum Question {
    case none
    case asked(DecisionForm)
    /// It gets no decision; the answer is the exchange's content.
    case refused
}

// A request that another proxy asks about, before it forwards that request itself.
//
// The head of that request is written anew where it is not the question's own, and read by the
// parser that reads all heads. From there on it is a request like any other: the same rule in all
// readings of its path, the same checks, the same verdict. Only its end differs. Where it would go
// to an origin, the proxy is told that it may forward it.
extension Exchange {
    /// Finds the request that is asked about, and goes on with its head.
    ///
    /// Checked in this order: that the asker may ask, that the question has no content, that
    /// nothing in it makes the application execute what is not asked about, that it names one
    /// request, and that this request's head is well-formed.
    func readQuestion(_ form: DecisionForm, _ octets: Span<UInt8>) -> RequestFlow.Action {
        proxy.tally.add(.decisions)
        guard let client, client.peerIsTrusted else {
            return refuse(.fault(.askerUntrusted), octets)
        }
        guard !flow.facts.hasContent else { return refuse(.fault(.contentRefused), octets) }
        if let fault = leadingAround(proxy.heads.request, octets) {
            return refuse(.fault(fault), octets)
        }
        guard form.isWritten else {
            question = .asked(form)
            return readHead(proxy.heads.request, octets)
        }
        var asked = proxy.takeHead()
        defer { proxy.giveBack(head: &asked) }
        guard form.write(proxy.heads.request, octets, into: &asked) else {
            return refuse(.fault(.questionUnclear), octets)
        }
        let heads = proxy.askedHeads
        do throws(Malformed) {
            let limits = settings.clientLimits.head
            try heads.request.read(asked.span, isSecure: client.isSecure, limits: limits)
        } catch {
            proxy.tally.add(.malformedRequests)
            return refuse(.malformed(error.reason), octets)
        }
        question = .asked(form)
        return readHead(heads.request, asked.span)
    }

    /// What the other proxy would forward beside the request that is asked about, and the gateway
    /// would have deleted.
    private func leadingAround(
        _ question: borrowing RequestHead,
        _ octets: Span<UInt8>
    ) -> LocalFault? {
        if question.fields.asksForeignProtocol(octets) { return .protocolRefused }
        let guarded = settings.rules.guardedFields
        return question.fields.hasTwin(octets, guarding: guarded) ? .fieldDisguised : nil
    }

    /// There is no decision about what the question names, and its own head goes into the log.
    private func refuse(_ outcome: LocalOutcome, _ octets: Span<UInt8>) -> RequestFlow.Action {
        question = .refused
        content = .answered(LocalResponse(outcome))
        return readHead(proxy.heads.request, octets)
    }

    /// Tells the proxy that it may forward the request: with what the origin is to be told, and
    /// what the client is.
    func allowance() -> LocalResponse {
        writeVerdict()
        if case .asked(.extAuthz) = question { nameRemoved() }
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
