import Cryptography
import Encodings
import OutboundCalls

/// Checks tokens as Apple does.
struct TokenCheck {
    private var teams: [String: StandInTeam] = [:]
    private var seen: Set<String> = []
    private var refused: Set<String> = []
    var receiptsHaveBearer = false

    /// The greatest age of a token, and how far its time may be ahead, in seconds. The hour is
    /// Apple's. Apple's bound for wrong clocks is unknown.
    private static let ageMax: Int64 = 3_600
    private static let leadMax: Int64 = 60

    mutating func add(_ team: StandInTeam) { teams[team.keyID] = team }

    mutating func refuseAllSeen() { refused.formUnion(seen) }

    /// The token in a field's value, if it has the right form there.
    func token(_ value: String?, _ family: AppleService.Family) -> String? {
        guard let value else { return nil }
        let wantsBearer = family == .deviceCheck || receiptsHaveBearer
        guard value.hasPrefix("Bearer ") == wantsBearer else { return nil }
        return wantsBearer ? String(value.dropFirst(7)) : value
    }

    /// Whether Apple would take a token now.
    mutating func accepts(_ token: String, at now: UnixTime) -> Bool {
        seen.insert(token)
        guard !refused.contains(token) else { return false }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64.decode(parts[0]),
            let claims = Base64.decode(parts[1]), let signature = Base64.decode(parts[2]),
            let head = JSONDocument(header.span, members: ["alg", "kid"]),
            let body = JSONDocument(claims.span, members: ["iss", "iat"]),
            head.string("alg") == "ES256", let team = head.string("kid").flatMap({ teams[$0] }),
            body.string("iss") == team.teamID, let issuedAt = body.integer("iat")
        else { return false }
        let age = now.seconds - Int64(issuedAt)
        guard age <= Self.ageMax, age >= -Self.leadMax else { return false }
        let signed = Array("\(parts[0]).\(parts[1])".utf8)
        return team.publicKey.isValidJOSESignature(signature.span, message: signed.span)
    }
}
