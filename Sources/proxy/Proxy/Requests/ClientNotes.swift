import AppAttest
import HTTPWire
import Rules
import Services
import Verification

/// Fields for the client in the response to an admitted request: the next challenge, and what the
/// client has to do before the rule can be enforced for it.
struct ClientNotes {
    private(set) var fields: [(name: StaticString, value: String)] = []

    /// The notes for the client of a judged request.
    init(_ exchange: Exchange) {
        let rule = exchange.flow.rule
        if case .off = rule.mode { return }
        // Parts of the verdict are read one by one: all of it is large to copy.
        if let refusal = exchange.flow.refusal,
            let next = rule.notice.nextStep(after: refusal, of: exchange.flow.verdictState.keyID)
        {
            fields.append(("App-Attest-Next", next))
        }
        guard rule.sendsNextChallenge else { return }
        // A session needs no challenge, and its requests should cost little.
        if exchange.flow.verdictState.isPass, exchange.flow.verdictState.proof == .session {
            return
        }
        fields.append(("App-Attest-Challenge", exchange.proxy.challenge()))
    }

    /// The fields for an origin's response. None where a shared cache may keep the response: other
    /// clients would get them.
    func fields(
        in head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        answering method: Method
    ) -> [(name: StaticString, value: String)] {
        fields.isEmpty || head.mayBeShared(bytes, answering: method) ? [] : fields
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
