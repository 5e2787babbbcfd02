import AppAttest
import Cryptography
import Encodings
import EventLoops
package import KeyStore
import Parties
import SoftwareAuthenticator

extension StandInServer {
    /// Decides about a request, and records it.
    func answer(
        _ request: StandInRequest,
        at host: AppleHost,
        tick: UInt64
    ) -> (play: StandInPlay, answer: StandInAnswer) {
        let time = now()
        let service = AppleService.allCases.first {
            $0.family == host.family && $0.path == request.path
        }
        return change { state in
            let token = state.tokens.token(request["Authorization"], host.family)
            let play = service.map { state.plays[$0, default: StandInPlays()].take() } ?? .proper
            let answer = Self.answer(request, host, service, token, play, &state, time)
            state.calls.add(
                StandInCalls.Sighting(
                    host: host,
                    path: request.path,
                    service: service,
                    authorization: request["Authorization"],
                    contentType: request["Content-Type"],
                    time: time,
                    tick: tick,
                    status: play.isSilent ? nil : answer.status
                ),
                token: token
            )
            return (play, answer)
        }
    }

    private static func answer(
        _ request: StandInRequest,
        _ host: AppleHost,
        _ service: AppleService?,
        _ token: String?,
        _ play: StandInPlay,
        _ state: inout State,
        _ time: UnixTime
    ) -> StandInAnswer {
        if let answer = play.answer { return answer }
        guard let service else { return StandInAnswer(404, "Not Found") }
        guard request.method == "POST" else { return StandInAnswer(405, "Method Not Allowed") }
        guard let token else {
            return StandInAnswer(
                service.family == .receipts ? 401 : 400,
                "Missing or badly formatted authorization token"
            )
        }
        guard state.tokens.accepts(token, at: time) else {
            return StandInAnswer(401, "Unable to verify authorization token")
        }
        guard service == .receipts else {
            return state.bits.answer(service, request.body, at: host, time)
        }
        return state.receipts.answer(request.body, at: host, play, time)
    }
}

extension StandInPlay {
    /// Whether the client gets no HTTP answer.
    fileprivate var isSilent: Bool {
        switch self {
        case .hang, .garbage, .cut: true
        case .proper, .slow, .drip, .status, .long, .redirect, .receipt, .receiptOfAttestation,
            .receiptAsSent:
            false
        }
    }
}

/// A team with a key, as developer.apple.com makes them.
package struct StandInTeam: Sendable {
    package let teamID: String
    package let keyID: String
    let publicKey: P256PublicKey
    /// The content of the `.p8` file.
    package let p8: String

    package init(teamID: String = "TEAM123456", keyID: String = "ABC123DEFG") {
        let key = P256PrivateKey()
        self.teamID = teamID
        self.keyID = keyID
        publicKey = key.publicKey
        p8 = key.key.pem
    }
}

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

/// Exchanges receipts for newer ones.
struct ReceiptService {
    private var keys: [P256PublicKey: (key: SoftwareKey, riskMetric: UInt32)] = [:]

    mutating func add(_ key: SoftwareKey, _ riskMetric: UInt32) {
        keys[key.publicKey] = (key, riskMetric)
    }

    mutating func forget(_ key: SoftwareKey) { keys[key.publicKey] = nil }

    /// Apple's answer (Apple, "Assessing fraud risk").
    ///
    /// - play: a receipt that is wrong, or `.proper`.
    func answer(
        _ body: [UInt8],
        at host: AppleHost,
        _ play: StandInPlay,
        _ now: UnixTime
    ) -> StandInAnswer {
        guard let bytes = Base64.decode(body.span),
            let receipt = try? UnverifiedReceipt(bytes: bytes)
        else { return StandInAnswer(400, "Bad payload") }
        // The field has "sandbox" for development.
        let isProduction = receipt.fields.environment == "production"
        guard host.environment == .test || (host.environment == .production) == isProduction else {
            return StandInAnswer(400, "Wrong environment")
        }
        guard let publicKey = receipt.fields.certificate.p256PublicKey,
            let (key, metric) = keys[publicKey]
        else { return StandInAnswer(404, "No data found") }
        if case .proper = play, let notBefore = receipt.fields.notBefore, now < notBefore {
            return StandInAnswer(304)
        }
        func receiptText(
            _ kind: ReceiptKind,
            _ damage: ReceiptDamage?,
            age: Int64
        ) -> StandInAnswer {
            let made = key.receipt(
                kind,
                clientDataHash: receipt.fields.clientHash ?? [],
                at: now.advanced(bySeconds: -age),
                damage: damage
            )
            return StandInAnswer(200, Base64.text(made))
        }
        switch play {
        case .receipt(let damage, let age):
            return receiptText(.refreshed(riskMetric: metric), damage, age: age)
        case .receiptOfAttestation: return receiptText(.attest, nil, age: 0)
        case .receiptAsSent: return StandInAnswer(200, Base64.text(bytes))
        case .proper, .slow, .drip, .status, .hang, .garbage, .cut, .long, .redirect:
            return receiptText(.refreshed(riskMetric: metric), nil, age: 0)
        }
    }
}

/// The two bits of devices, for one team.
struct BitService {
    private var bits: [String: (bit0: Bool, bit1: Bool, month: String)] = [:]
    /// Transactions that calls have named, and how many of them were named again.
    private var transactions: Set<String> = []
    private(set) var repeatedTransactions = 0

    /// How wrong the time of a call may be, in seconds. Apple's own bound is not known.
    private static let skewMax: Int64 = 300

    subscript(device: String) -> (bit0: Bool, bit1: Bool)? {
        bits[device].map { ($0.bit0, $0.bit1) }
    }

    mutating func set(_ device: String, _ bit0: Bool, _ bit1: Bool, at now: UnixTime) {
        bits[device] = (bit0, bit1, String(now.iso8601.prefix(7)))
    }

    /// Apple's answer (Apple, "Accessing and modifying per-device data"; the texts are those that
    /// were seen).
    mutating func answer(
        _ service: AppleService,
        _ body: [UInt8],
        at host: AppleHost,
        _ now: UnixTime
    ) -> StandInAnswer {
        guard let asked = Members(body) else { return StandInAnswer(400, "Bad JSON") }
        guard let device = asked.device(at: host) else {
            return StandInAnswer(400, "Missing or incorrectly formatted device token payload")
        }
        guard let transaction = asked.texts["transaction_id"], !transaction.isEmpty else {
            return StandInAnswer(400, "Missing or incorrectly formatted transaction id")
        }
        if !transactions.insert(transaction).inserted { repeatedTransactions += 1 }
        // The time is in milliseconds: one in seconds is decades off.
        guard let time = asked.numbers["timestamp"],
            time / 1_000 >= now.seconds - Self.skewMax, time / 1_000 <= now.seconds + Self.skewMax
        else { return StandInAnswer(400, "Missing or incorrectly formatted time stamp") }
        switch service {
        case .queryBits:
            guard let found = bits[device] else {
                return StandInAnswer(200, "Failed to find bit state")
            }
            return .json(
                200,
                #"{"bit0":\#(found.bit0),"bit1":\#(found.bit1),"#
                    + #""last_update_time":"\#(found.month)"}"#
            )
        case .updateBits:
            guard let bit0 = asked.flags["bit0"], let bit1 = asked.flags["bit1"] else {
                return StandInAnswer(400, "Missing or incorrectly formatted bits")
            }
            set(device, bit0, bit1, at: now)
            return StandInAnswer(200)
        case .validateToken: return StandInAnswer(200)
        case .receipts: return StandInAnswer(404)
        }
    }
}

extension BitService {
    /// The members of a body.
    private struct Members {
        var texts: [String: String] = [:]
        var numbers: [String: Int64] = [:]
        var flags: [String: Bool] = [:]

        init?(_ body: [UInt8]) {
            do throws(JSONError) {
                try read(body.span)
            } catch {
                return nil
            }
        }

        private mutating func read(_ text: Span<UInt8>) throws(JSONError) {
            var reader = JSONReader()
            try reader.beginObject(text)
            while let bytes = try reader.nextName(text) {
                let name = String(decoding: bytes, as: UTF8.self)
                switch try reader.scalar(text) {
                case .string(let value): texts[name] = String(decoding: value, as: UTF8.self)
                case .number(let value): numbers[name] = value
                case .boolean(let value): flags[name] = value
                case .null: break
                }
            }
            try reader.end(text)
        }

        /// The device of a token that ``StandInServer/deviceToken(_:_:)`` made for this host.
        func device(at host: AppleHost) -> String? {
            guard let bytes = texts["device_token"].flatMap({ Base64.decode($0) }) else {
                return nil
            }
            let parts = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
            guard parts.count == 4, parts[0] == "device-token",
                host.environment == .test || parts[1] == host.environment.rawValue
            else { return nil }
            return String(parts[2])
        }
    }
}

extension StandInServer {
    /// A new device token, as `DCDevice.generateToken` gives it: opaque to all but Apple, and
    /// different each time.
    package static func deviceToken(
        _ device: String,
        _ environment: KeyEnvironment = .production
    ) -> String {
        let number = Base64.text(RandomBytes.make(count: 64))
        return Base64.text(
            Array("device-token\n\(environment.rawValue)\n\(device)\n\(number)".utf8)
        )
    }
}
