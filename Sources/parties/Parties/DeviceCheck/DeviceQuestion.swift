import Encodings
package import KeyStore
package import OutboundCalls
package import Rules
package import Verification

/// A query to DeviceCheck about a device (Apple, "Accessing and modifying per-device data").
package enum DeviceQuestion: Hashable, Sendable {
    /// Asks for its two bits.
    case query
    /// Stores these bits. Apple takes both, and a missing bit is lost.
    case update(DeviceBits)
    /// Asks whether the token is genuine.
    case validate

    package var service: AppleService {
        switch self {
        case .query: .queryBits
        case .update: .updateBits
        case .validate: .validateToken
        }
    }

    /// The call's content.
    ///
    /// - transaction: the unique name of the call.
    /// - milliseconds: the wall clock since 1970. Apple refuses a wrong time.
    package func body(_ token: DeviceToken, transaction: String, at milliseconds: Int64) -> [UInt8]
    {
        var json = JSONWriter()
        json.object { json in
            json.member("device_token", token.text)
            json.member("transaction_id", transaction)
            json.member("timestamp", milliseconds)
            switch self {
            case .query, .validate: break
            case .update(let bits):
                json.member("bit0", bits.bit0)
                json.member("bit1", bits.bit1)
            }
        }
        return json.bytes
    }
}

/// A device in a query to DeviceCheck.
package struct NamedDevice: Hashable, Sendable {
    package let token: DeviceToken
    /// The environment of the app that made the token: the host of the other environment does not
    /// know the token.
    package let environment: KeyEnvironment
    /// The team whose bits they are; `nil` for the only team.
    package let teamID: String?

    package init(_ token: DeviceToken, _ environment: KeyEnvironment, teamID: String?) {
        self.token = token
        self.environment = environment
        self.teamID = teamID
    }

    /// The call that asks about it.
    package func call(
        _ question: DeviceQuestion,
        transaction: String,
        at milliseconds: Int64,
        timeout: Duration
    ) -> AppleCall {
        AppleCall(
            service: question.service,
            environment: environment,
            teamID: teamID,
            body: question.body(token, transaction: transaction, at: milliseconds),
            timeout: timeout
        )
    }
}

/// The meaning of DeviceCheck's reply.
package enum DeviceReply: Hashable, Sendable {
    /// The bits of a query, and the month of their last change, "YYYY-MM", where Apple names it.
    case bits(DeviceBits, month: String?)
    /// The device's bits were never set. This is no error, although the answer is no JSON.
    case neverSet
    /// An update was stored, or a token is genuine.
    case done
    /// The token is invalid, or of the other environment or of another team.
    case tokenRefused
    case failed(PartyFault)

    /// Reads the reply to a query.
    ///
    /// | status | body | |
    /// |---|---|---|
    /// | 200 | JSON, of a query | the bits |
    /// | 200 | "Bit State Not Found" (documented), "Failed to find bit state" (seen) | never set |
    /// | 200 | anything, of the others | done |
    /// | 400 | about the authorization token, time stamp, transaction or bits | our call |
    /// | 400 | "Missing or incorrectly formatted device token payload", all else | the token |
    /// | 413 | | the token |
    /// | 401, 403 | | the team's key |
    /// | 429 | | too many |
    /// | 5xx | | Apple |
    package init(_ reply: CallReply, to question: DeviceQuestion) {
        switch reply {
        case .answered(200, _, let body): self = Self.success(body, question)
        case .answered(400, _, let body):
            self = Self.speaksOfCall(body) ? .failed(.callRefused) : .tokenRefused
        case .answered(413, _, _): self = .tokenRefused
        case .answered(401, _, _), .answered(403, _, _): self = .failed(.credentialRefused)
        case .answered, .unsent, .failed: self = .failed(PartyFault(reply) ?? .unreadable)
        }
    }

    private static func success(_ body: [UInt8], _ question: DeviceQuestion) -> DeviceReply {
        switch question {
        case .update, .validate: return .done
        case .query: break
        }
        guard !isNeverSet(body) else { return .neverSet }
        do throws(JSONError) {
            return try bits(body.span)
        } catch {
            return .failed(.unreadable)
        }
    }

    /// The texts are compared without case and surrounding white space: Apple documents one text
    /// and sends the other.
    private static func isNeverSet(_ body: [UInt8]) -> Bool {
        let text = word(body)
        return text == "bit state not found" || text == "failed to find bit state"
    }

    /// Whether the fault can't be caused by a device token. The client chooses its token, so every
    /// other fault is attributed to the token.
    private static func speaksOfCall(_ body: [UInt8]) -> Bool {
        let text = word(body)
        return ["authorization token", "time stamp", "timestamp", "transaction", "bits"]
            .contains { text.contains($0) }
    }

    private static func word(_ body: [UInt8]) -> String {
        let space: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
        let start = body.drop { space.contains($0) }
        let text = start.reversed().drop { space.contains($0) }.reversed()
        return String(decoding: text, as: UTF8.self).lowercased()
    }

    private static func bits(_ text: Span<UInt8>) throws(JSONError) -> DeviceReply {
        var reader = JSONReader()
        var bits: [[UInt8]: Bool] = [:]
        var month: String?
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            switch String(decoding: name, as: UTF8.self) {
            case "bit0", "bit1":
                guard bits[name] == nil, case .boolean(let bit) = try reader.scalar(text) else {
                    throw reader.error("use true or false, once")
                }
                bits[name] = bit
            case "last_update_time":
                guard month == nil, case .string(let written) = try reader.scalar(text),
                    let read = Self.month(written)
                else { throw reader.error("use YYYY-MM, once") }
                month = read
            default: try reader.skipValue(text, depth: 1)
            }
        }
        try reader.end(text)
        guard let bit0 = bits[Array("bit0".utf8)], let bit1 = bits[Array("bit1".utf8)] else {
            throw reader.error("a bit is missing")
        }
        return .bits(DeviceBits(bit0: bit0, bit1: bit1), month: month)
    }

    private static func month(_ text: [UInt8]) -> String? {
        guard text.count == 7 else { return nil }
        for (index, byte) in text.enumerated() {
            let isDigit = (0x30...0x39).contains(byte)
            guard index == 4 ? byte == UInt8(ascii: "-") : isDigit else { return nil }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
