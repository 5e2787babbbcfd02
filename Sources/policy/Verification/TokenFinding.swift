import Encodings
package import Rules
package import Signatures

/// The result of checking a token that a request shows.
package enum TokenFinding: Hashable, Sendable {
    /// It is genuine, holds for this rule's proof, and is used up where it is good once.
    case good
    /// It is good, and Google Play says this of the phone and its app.
    case verdict(IntegrityVerdict)
    /// The request carries none.
    case missing
    /// It can't be read, or the request carries two: no specification says which one counts.
    case malformed
    /// It is not of the issuer: a wrong signature or an unknown key.
    case invalid
    /// It is of the issuer, and too old or not valid yet.
    case expired
    /// It is good once, and was used before.
    case spent
    /// It is genuine, and not for this gateway or not good enough: its audience, a claim, a score.
    case refused
    /// The client has caused as many checks as it may. The client chooses their number, so the
    /// request is refused whatever `on_error` says.
    case throttled
    /// Nothing is known of it: a party failed. The proof's `on_error` decides.
    case unavailable

    /// The refusal; `nil` where there is none, or a party failed.
    fileprivate var refusal: Refusal? {
        switch self {
        case .good, .verdict, .unavailable: nil
        case .missing: .proofMissing
        case .malformed: .proofMalformed
        case .invalid: .proofInvalid
        case .expired: .proofExpired
        case .spent: .proofSpent
        case .refused: .proofRefused
        case .throttled: .proofThrottled
        }
    }

    /// The word of the log and of the origin's field, where the token carries no verdict.
    fileprivate var word: String {
        switch self {
        case .good, .verdict: "good"
        case .missing: "missing"
        case .malformed: "malformed"
        case .invalid: "invalid"
        case .expired: "expired"
        case .spent: "spent"
        case .refused: "refused"
        case .throttled: "throttled"
        case .unavailable: "unavailable"
        }
    }
}

/// What is known of a request's tokens. They are checked one after the other, after its signature:
/// first, where that is missing or no good, those that may stand in its place, until one is good;
/// then, once the request has proved itself, those that the rule asks for beside.
package struct TokenCourse: Sendable {
    /// Of the tokens that may stand in the place of a signature, how many were checked.
    fileprivate var replacements = 0
    /// Of the tokens beside, how many were checked.
    fileprivate var others = 0
    /// The first refusal of a token that was shown, and the token.
    fileprivate var refused: (refusal: Refusal, proof: TokenProof)?
    /// Whether a token stands in the place of a signature.
    fileprivate var isTaken = false
    /// Whether it is known what Apple says of the device.
    var knowsDevice = false
    /// What an integrity token has to be bound to; `nil` where none is asked for.
    package var binding: IntegrityBinding?
    /// What was found of the integrity token; `nil` where none was asked for so far.
    package fileprivate(set) var integrity: IntegrityNote?
    /// The proof that can't be checked, since a party failed; `nil` for none.
    package fileprivate(set) var failed: TokenProof?
    /// The tokens beside the proof that are good.
    package fileprivate(set) var beside: [TokenProof] = []
    /// Why a signature that the request carries was not taken, where a token was taken instead.
    package fileprivate(set) var instead: Refusal?
}

/// What is asked about a request, and answered later or at once.
package enum RequestQuery: Hashable, Sendable {
    /// Apple, about its device.
    case device
    /// Whoever knows, about its token for this proof.
    case token(TokenProof)
}

/// The answer to a query about a request.
package enum QueryAnswer: Hashable, Sendable {
    case device(DeviceFinding)
    case token(TokenProof, TokenFinding)

    package var query: RequestQuery {
        switch self {
        case .device: .device
        case .token(let proof, _): .token(proof)
        }
    }

    /// The answer where the party that is asked does not answer.
    package static func unavailable(_ query: RequestQuery) -> QueryAnswer {
        switch query {
        case .device: .device(.unavailable)
        case .token(let proof): .token(proof, .unavailable)
        }
    }
}

extension Verdict {
    /// Takes the answer to the query that ``nextQuery(_:)`` has named.
    package mutating func settle(_ answer: QueryAnswer, _ rule: Rule) {
        switch answer {
        case .device(let finding): rule.device.map { settle(finding, $0) }
        case .token(let proof, let finding): settle(finding, of: proof, rule)
        }
    }

    /// Whether the request has proved itself, and no demand is known not to hold.
    package var stands: Bool { refusal == nil && (level == .complete || tokens.isTaken) }

    /// All proofs that were taken, in the words of the log: the one by which the request proves
    /// itself, then those beside it. `nil` where it does not try to prove itself.
    package var takenProofs: String? {
        proof.map { proof in proofsBeside.reduce(into: proof.name) { $0 += ", " + $1.name } }
    }

    /// What is asked next; `nil` where no answer can change the verdict.
    ///
    /// Tokens beside the proof come before the device: the least of them costs no call. A request
    /// that is refused anyway costs none.
    package func nextQuery(_ rule: Rule) -> RequestQuery? {
        guard rule.namesTokens || rule.asksDevice else { return nil }
        guard stands else {
            let replacements = replacements(rule)
            return tokens.replacements < replacements.count
                ? .token(replacements[tokens.replacements]) : nil
        }
        if tokens.others < rule.also.count { return .token(rule.also[tokens.others]) }
        if let integrity = rule.integrity, awaitsIntegrity { return .token(integrity.proof) }
        return rule.asksDevice && level == .complete && !tokens.knowsDevice ? .device : nil
    }

    /// Whether what Google Play says of the phone is asked for and not known yet. A request that is
    /// refused for another token's sake costs no call.
    private var awaitsIntegrity: Bool {
        tokens.binding != nil && tokens.integrity == nil && level == .complete
            && tokens.failed?.onError != .refuse
    }

    private mutating func settle(_ finding: TokenFinding, of proof: TokenProof, _ rule: Rule) {
        if let integrity = rule.integrity, integrity.proof == proof {
            settle(finding, integrity)
        } else if stands {
            settleBeside(finding, proof, rule)
        } else {
            settleReplacement(finding, proof, rule)
        }
    }

    /// Takes what was found of an integrity token. A rule that marks refuses nothing.
    private mutating func settle(_ finding: TokenFinding, _ rule: IntegrityRule) {
        let note = IntegrityNote(finding, rule)
        tokens.integrity = note
        if note.isMet { tokens.beside.append(rule.proof) }
        guard rule.action == .refuse, !note.isMet else { return }
        guard let refusal = note.refusal else {
            tokens.failed = rule.proof
            if outcome == .pass || rule.proof.onError == .refuse { outcome = .failure(.proof) }
            return
        }
        outcome = .refuse(refusal)
    }

    private mutating func settleBeside(_ finding: TokenFinding, _ proof: TokenProof, _ rule: Rule) {
        tokens.others += 1
        switch finding {
        case .good, .verdict: tokens.beside.append(proof)
        case .unavailable:
            // The proofs after it are checked nevertheless, where it does not refuse by itself.
            if tokens.failed?.onError != .refuse { tokens.failed = proof }
            if proof.onError == .refuse { tokens.others = rule.also.count }
        case .missing, .malformed, .invalid, .expired, .spent, .refused, .throttled:
            if let refusal = finding.refusal { outcome = .refuse(refusal) }
        }
        concludeBeside(rule)
    }

    /// All tokens beside were checked: a failed party becomes the verdict.
    private mutating func concludeBeside(_ rule: Rule) {
        guard refusal == nil, tokens.others == rule.also.count, let failed = tokens.failed,
            outcome == .pass || failed.onError == .refuse
        else { return }
        outcome = .failure(.proof)
    }

    private mutating func settleReplacement(
        _ finding: TokenFinding,
        _ proof: TokenProof,
        _ rule: Rule
    ) {
        tokens.replacements += 1
        switch finding {
        case .good, .verdict: return take(proof, rule)
        case .unavailable: tokens.failed = tokens.failed ?? proof
        case .missing: break
        case .malformed, .invalid, .expired, .spent, .refused, .throttled:
            tokens.refused = tokens.refused ?? finding.refusal.map { ($0, proof) }
        }
        guard tokens.replacements == replacements(rule).count else { return }
        // No token is good. A party that failed comes first: the token may be good.
        if let failed = tokens.failed {
            guard failed.onError == .forward else { return fail(failed) }
            take(failed, rule)
            tokens.failed = failed
            return concludeBeside(rule)
        }
        switch outcome {
        // Nothing was signed: what is wrong with the token says more.
        case .refuse(.assertionMissing), .refuse(.proofMissing):
            if let refused = tokens.refused { refuse(refused.refusal, refused.proof) }
        case .refuse(.unsupported):
            guard case .require(let asked) = rule.unsupported else { break }
            refuse(tokens.refused?.refusal ?? .proofMissing, tokens.refused?.proof ?? asked)
        case .pass, .refuse, .failure: break
        }
    }

    private mutating func refuse(_ refusal: Refusal, _ proof: TokenProof) {
        self.proof = .token(proof)
        outcome = .refuse(refusal)
    }

    /// The token can't be checked, and no other is good.
    private mutating func fail(_ failed: TokenProof) {
        switch outcome {
        case .refuse(.assertionMissing), .refuse(.proofMissing), .refuse(.unsupported):
            proof = .token(failed)
            outcome = .failure(.proof)
        // A signature that is no good is the better reason.
        case .pass, .refuse, .failure: break
        }
    }

    /// The request proves itself by a token. Nothing of a key that it names was proven, so nothing
    /// of it stays.
    private mutating func take(_ proof: TokenProof, _ rule: Rule) {
        var taken = Verdict(.pass, proof: .token(proof))
        taken.tokens = tokens
        taken.tokens.isTaken = true
        taken.tokens.failed = nil
        switch outcome {
        case .refuse(.assertionMissing), .refuse(.proofMissing), .refuse(.unsupported): break
        case .refuse(let refusal): taken.tokens.instead = refusal
        case .failure(let dependency): taken.tokens.instead = dependency.refusal
        case .pass: break
        }
        self = taken
    }

    /// The tokens that may stand in the place of the signature, in the order in which they are
    /// checked; none where the fault is not one of the proof.
    private func replacements(_ rule: Rule) -> [TokenProof] {
        switch outcome {
        case .pass: return []
        case .failure: return rule.accept.tokens
        case .refuse(let refusal):
            guard refusal.row.subject.isOfProof else { return [] }
            guard refusal == .unsupported, case .require(let token) = rule.unsupported else {
                return rule.accept.tokens
            }
            return [token] + rule.accept.tokens.filter { $0 != token }
        }
    }
}

/// What was found of an integrity token, for the log and the origin.
///
/// A reference, so that other requests carry one word.
package final class IntegrityNote: Sendable {
    /// Whether the token is good, and all conditions hold.
    package let isMet: Bool
    /// Why a rule that refuses refuses; `nil` where all conditions hold, or a party failed.
    package let refusal: Refusal?
    /// An item of RFC 9651: the token `met`, `unmet` or a word for a token that is no good. Its
    /// parameters are `of`, the conditions that do not hold, and what Google says.
    package let text: String

    package init(_ finding: TokenFinding, _ rule: IntegrityRule) {
        guard case .verdict(let verdict) = finding else {
            (isMet, refusal, text) = (false, finding.refusal, finding.word)
            return
        }
        let unmet = rule.unmet(by: verdict)
        isMet = unmet.isEmpty
        refusal = unmet.isEmpty ? nil : .proofRefused
        var parts = [unmet.isEmpty ? "met" : "unmet"]
        func add(_ name: String, _ words: [String]) {
            parts.append("\(name)=\"\(words.joined(separator: " "))\"")
        }
        if !unmet.isEmpty { add("of", unmet.map(\.rawValue)) }
        add("device", verdict.device.sorted().map(\.rawValue))
        if verdict.isRecognized { parts.append("recognized") }
        if verdict.isLicensed { parts.append("licensed") }
        if let level = verdict.activity { parts.append("activity=\(level)") }
        if let protect = verdict.playProtect { parts.append("play-protect=\(protect.rawValue)") }
        if verdict.isTest { parts.append("test") }
        text = parts.joined(separator: ";")
    }
}

/// The result of asking about a request's device.
package enum DeviceFinding: Hashable, Sendable {
    /// Apple's bits of the device.
    case bits(DeviceBits)
    /// The request carries no device token.
    case missing
    /// The request's text is no device token, or Apple doesn't accept it as one.
    case malformed
    /// The token was used before.
    case used
    /// The most allowed queries to Apple about tokens of the key, or of its address, are under way.
    /// The client chooses their number, so the request is refused whatever the rule says of errors.
    case crowded
    /// The memory of used tokens is full. The request is refused likewise: a token that is not
    /// remembered would be good for ever.
    case full
    /// The device's bits are unknown: Apple failed, did not answer in time or sent an unreadable
    /// answer. Or the gateway made no call, since too many wait, Apple's host is in backoff, or
    /// there is no key of the team. The rule's `device.on_error` decides.
    case unavailable
}

extension Verdict {
    /// Takes the result of asking about the device.
    mutating func settle(_ finding: DeviceFinding, _ rule: DeviceRule) {
        tokens.knowsDevice = true
        switch finding {
        case .bits(let bits):
            deviceBits = bits
            if rule.refused.contains(bits) { outcome = .refuse(.deviceFlagged) }
        case .missing: outcome = .refuse(.deviceTokenMissing)
        case .malformed: outcome = .refuse(.deviceTokenMalformed)
        case .used: outcome = .refuse(.deviceTokenUsed)
        case .crowded: outcome = .refuse(.deviceThrottled)
        case .full: outcome = .refuse(.deviceCheckUnavailable)
        case .unavailable:
            // Another party that failed before, and by which the request is refused, stays.
            if outcome == .pass || rule.onError == .refuse { outcome = .failure(.deviceCheck) }
        }
    }
}

/// What `DCDevice.generateToken` gives an app: it names the device to Apple, for the app's team.
/// Only Apple can read it.
package struct DeviceToken: Hashable, Sendable {
    /// The most characters of base64. Tokens of today have between 2,000 and 3,000.
    package static let textMax = 8192

    /// Standard base64 with padding and without line breaks, as Apple asks.
    package let text: String
    /// Names the token: equal for all spellings of its base64.
    package let digest: SHA256Digest

    /// `nil` when the text is empty, too long or no base64.
    package init?(_ text: Span<UInt8>) {
        guard (1...Self.textMax).contains(text.count), let bytes = Base64.decode(text),
            !bytes.isEmpty
        else { return nil }
        self.text = Base64.text(bytes)
        digest = SHA256.digest(of: bytes)
    }
}
