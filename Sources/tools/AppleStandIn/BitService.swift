import Cryptography
import Encodings
package import KeyStore
import OutboundCalls

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
