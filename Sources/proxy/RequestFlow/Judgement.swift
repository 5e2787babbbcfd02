package import AppAttest
package import Cryptography
package import HTTPWire
package import Rules
package import Verification

/// What is known of a request's verdict.
package enum Judgement: Sendable {
    /// Nothing: it was not judged, or needs no verdict.
    case none
    /// The head is good as far as it goes, and the content has to come.
    case provisional(Ruling, Enforcement)
    /// The verdict.
    case given(Ruling, Enforcement)

    /// The verdict and whether it is enforced, once there is one.
    package var verdict: (ruling: Ruling, enforcement: Enforcement)? {
        switch self {
        case .none, .provisional: nil
        case .given(let ruling, let enforcement): (ruling, enforcement)
        }
    }

    /// Whether the assertion was used: its counter, or its challenge.
    var isProven: Bool {
        switch self {
        case .none, .provisional: false
        case .given(let ruling, _):
            if case .complete = ruling.standing { true } else { false }
        }
    }

    /// The key whose assertion, or session, the request was admitted by; `nil` where there is none.
    package var admittedKey: KeyID? {
        guard isProven, refusal == nil, let (ruling, _) = verdict else { return nil }
        return ruling.keyID
    }

    /// The refusal that the verdict is, whether or not it is enforced.
    package var refusal: Refusal? {
        switch self {
        case .none, .provisional: nil
        case .given(let ruling, _): ruling.refusal
        }
    }

    /// Whether the verdict is a pass.
    var isPass: Bool {
        switch self {
        case .none, .provisional: false
        case .given(let ruling, _):
            if case .pass = ruling.verdict { true } else { false }
        }
    }
}

/// Whether a verdict that is no pass refuses the request.
package enum Enforcement: Equatable, Sendable {
    case observed
    case enforced

    /// Whether rule and rollout include the client.
    ///
    /// - signer: the key that has signed the request; `nil` when none is known to have. A key id
    ///   that is only named could be chosen so that it falls outside; such a request goes by the
    ///   client's address.
    package init(_ rule: Rule, signer: KeyID?, address: IPAddress, at now: UnixTime) {
        switch rule.mode {
        case .off, .observe:
            self = .observed
            return
        case .deny:
            self = .enforced
            return
        case .enforce: break
        }
        let includes: Bool
        if let key = Self.key(rule, signer) {
            includes = rule.rollout.enforces(key.digest.bytes.span, at: now)
        } else {
            includes = rule.rollout.enforces(address.bytes.span, at: now)
        }
        self = includes ? .enforced : .observed
    }

    /// Where a request stands in the rollout of its rule, whatever mode and share say today.
    ///
    /// - signer, address: as above.
    package static func bucket(_ rule: Rule, signer: KeyID?, address: IPAddress) -> Bucket {
        if let key = key(rule, signer) {
            rule.rollout.bucket(of: key.digest.bytes.span)
        } else {
            rule.rollout.bucket(of: address.bytes.span)
        }
    }

    /// The key that the rollout goes by; `nil` where it goes by the address.
    private static func key(_ rule: Rule, _ signer: KeyID?) -> KeyID? {
        switch rule.rollout.subject {
        case .key: signer
        case .address: nil
        }
    }
}
