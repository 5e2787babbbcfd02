import AppAttest
import HTTPWire
import Rules
import Services
import Verification

extension Exchange {
    /// Fields for the client in the response to an admitted request: the next challenge, and what
    /// the client has to do before the rule can be enforced for it.
    var clientNotes: [(name: StaticString, value: String)] {
        let rule = flow.rule
        if case .off = rule.mode { return [] }
        var fields: [(name: StaticString, value: String)] = []
        // Parts of the verdict are read one by one: all of it is large to copy.
        if let refusal = flow.refusal,
            let next = rule.notice.nextStep(after: refusal, of: flow.verdictState.keyID)
        {
            fields.append(("App-Attest-Next", next))
        }
        guard rule.sendsNextChallenge else { return fields }
        // A session needs no challenge, and its requests should cost little.
        if flow.verdictState.isPass, flow.verdictState.proof == .session { return fields }
        fields.append(("App-Attest-Challenge", proxy.challenge()))
        return fields
    }

    /// The notes for an origin's response. None where a shared cache may keep the response: other
    /// clients would get them.
    func clientNotes(
        in head: borrowing ResponseHead,
        _ bytes: Span<UInt8>
    ) -> [(name: StaticString, value: String)] {
        let fields = clientNotes
        return fields.isEmpty || head.mayBeShared(bytes, answering: flow.facts.method) ? [] : fields
    }
}

extension ClientNotice {
    /// The next step of a client whose request was forwarded although it would be refused; `nil`
    /// where the client can't do anything.
    ///
    /// The field names the key that is to be replaced: the client's own cache may answer a later
    /// request, of another key, with the same field. It says why where the fault is the session's:
    /// a client can't tell from a good answer that its session has ended.
    fileprivate func nextStep(after refusal: Refusal, of keyID: KeyID?) -> String? {
        switch refusal {
        // A client that has not sent a token learns from this field that the rule asks for one, and
        // one that signs other bytes learns what the rule signs.
        case .deviceTokenMissing, .proofMissing, .signatureMismatch: return signAgain
        default: break
        }
        return switch LocalOutcome.refused(refusal).row.nextStep {
        case .enrol: enrol + (keyID.map { ";key=\"\($0.base64)\"" } ?? "")
        case .signAgain: signAgain + (refusal.isOfSession ? ";error=\"\(refusal.rawValue)\"" : "")
        case .getToken, .fixClient, .none, .retryLater, .unsaid: nil
        }
    }
}

extension Refusal {
    /// Whether the client's next request has to go without the session.
    fileprivate var isOfSession: Bool {
        switch self {
        case .sessionUnknown, .sessionExpired, .sessionMismatch, .sessionRefused: true
        default: false
        }
    }
}
