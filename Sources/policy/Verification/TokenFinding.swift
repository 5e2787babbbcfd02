package import AppAttest
package import HTTPWire
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
        proof.map { proof in ([proof.name] + tokens.beside.map(\.name)).joined(separator: ", ") }
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
            guard refusal.isOfProof else { return [] }
            guard refusal == .unsupported, case .require(let token) = rule.unsupported else {
                return rule.accept.tokens
            }
            return [token] + rule.accept.tokens.filter { $0 != token }
        }
    }
}

extension Refusal {
    /// Whether another proof may be taken: the fault is not one of the request itself, or of what
    /// its sender has used up.
    fileprivate var isOfProof: Bool {
        switch self {
        case .preflight, .addressThrottled, .addressHeld, .keyHeld, .heldFull, .spillFailed,
            .contentTooLarge, .noRule, .proofMalformed, .proofInvalid, .proofExpired, .proofSpent,
            .proofRefused, .proofThrottled, .proofUnavailable:
            false
        default: true
        }
    }
}

/// What an integrity token has to be bound to.
///
/// A reference, so that requests whose rules ask for no such token carry one word.
package final class IntegrityBinding: Sendable {
    /// The package of the key's app.
    package let package: String
    package let keyID: KeyID
    /// SHA-256 of what the key has signed, or of what it was attested over.
    package let clientDataHash: SHA256Digest

    package init(package: String, keyID: KeyID, clientDataHash: SHA256Digest) {
        self.package = package
        self.keyID = keyID
        self.clientDataHash = clientDataHash
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

/// The tokens that a request shows for the proofs that its rule names.
///
/// A reference, so that requests whose rules name none carry nothing.
package final class ShownTokens: Sendable {
    /// The most bytes of a token.
    package static let bytesMax = 8_192

    /// The contents of the field or the cookie.
    package enum Showing: Hashable, Sendable {
        case nothing
        /// It is empty, too long, or there twice.
        case unreadable
        case text([UInt8])
    }

    /// In the order of the rule's tokens.
    private let shown: [Showing]

    package init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ rule: Rule) {
        var shown: [Showing] = []
        for token in rule.tokens { shown.append(Self.showing(token.place, head, bytes)) }
        self.shown = shown
    }

    /// What a request to an endpoint shows in the field of a proof.
    package static func showing(
        _ place: TokenProof.Place,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>
    ) -> Showing {
        switch place {
        case .field(let name): field(name, head.fields, bytes)
        case .cookie(let name): cookie(name, head.fields, bytes)
        }
    }

    /// What the request shows for a proof of its rule.
    package func showing(_ proof: TokenProof, _ rule: Rule) -> Showing {
        rule.tokens.firstIndex(of: proof).map { shown[$0] } ?? .nothing
    }

    private static func field(
        _ name: [UInt8],
        _ section: borrowing FieldSection,
        _ bytes: Span<UInt8>
    ) -> Showing {
        var found = Showing.nothing
        for index in section.fields.indices {
            let field = section.fields[index]
            guard ProofFields.equal(bytes, field.name, name) else { continue }
            guard found == .nothing else { return .unreadable }
            if field.kind == .authorization {
                guard let token = bearer(bytes, field.value) else { continue }
                found = text(bytes, token)
            } else {
                found = text(bytes, field.value)
            }
        }
        return found
    }

    /// The place of the token after the scheme; `nil` for credentials of another scheme.
    private static func bearer(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Range<Int>? {
        let scheme: [UInt8] = Array("bearer".utf8)
        guard value.count > scheme.count,
            ProofFields.equal(bytes, value.lowerBound..<value.lowerBound + scheme.count, scheme),
            bytes[value.lowerBound + scheme.count] == 0x20
        else { return nil }
        var start = value.lowerBound + scheme.count
        while start < value.upperBound, bytes[start] == 0x20 { start += 1 }
        return start..<value.upperBound
    }

    /// HTTP/2 may send the cookies in several lines (RFC 9113 §8.2.3).
    private static func cookie(
        _ name: [UInt8],
        _ section: borrowing FieldSection,
        _ bytes: Span<UInt8>
    ) -> Showing {
        guard section.contains(.cookie) else { return .nothing }
        var found = Showing.nothing
        for index in section.fields.indices where section.fields[index].kind == .cookie {
            let value = section.fields[index].value
            var start = value.lowerBound
            while start < value.upperBound {
                var end = start
                while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
                if let pair = cookieValue(bytes, start..<end, name) {
                    guard found == .nothing else { return .unreadable }
                    found = text(bytes, pair)
                }
                start = end + 1
            }
        }
        return found
    }

    /// The value of a `name=value` pair with this name. Names of cookies have a case.
    private static func cookieValue(
        _ bytes: Span<UInt8>,
        _ pair: Range<Int>,
        _ name: [UInt8]
    ) -> Range<Int>? {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        var (start, end) = (pair.lowerBound, pair.upperBound)
        while start < end, isSpace(bytes[start]) { start += 1 }
        while end > start, isSpace(bytes[end - 1]) { end -= 1 }
        guard end - start > name.count, bytes[start + name.count] == UInt8(ascii: "=") else {
            return nil
        }
        for index in name.indices where bytes[start + index] != name[index] { return nil }
        return start + name.count + 1..<end
    }

    private static func text(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Showing {
        guard (1...bytesMax).contains(range.count) else { return .unreadable }
        return .text(bytes.extracting(range).withUnsafeBufferPointer { Array($0) })
    }
}
