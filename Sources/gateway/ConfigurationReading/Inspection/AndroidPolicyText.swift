internal import Encodings
internal import KeyAttestation

/// The policy of `verify android`, a JSON object of what differs from the standard one:
///
///     {"security_levels": ["strongbox"], "boot_states": ["verified", "self-signed"],
///      "require_locked": false, "origins": ["imported"], "provisioning": "rkp",
///      "min_os_patch_level": 202601}
enum AndroidPolicyText {
    static func policy(_ json: String) throws(UsageError) -> AndroidPolicy {
        do throws(JSONError) {
            return try read(ContiguousArray(json.utf8).span)
        } catch {
            throw UsageError(
                "--policy",
                "\(error); give a JSON object with any of security_levels, boot_states, "
                    + "require_locked, origins, provisioning, min_os_patch_level"
            )
        }
    }

    private static func read(_ text: Span<UInt8>) throws(JSONError) -> AndroidPolicy {
        var policy = AndroidPolicy.standard
        var reader = JSONReader()
        var seen: Set<String> = []
        try reader.beginObject(text)
        while let bytes = try reader.nextName(text) {
            let name = String(decoding: bytes, as: UTF8.self)
            guard seen.insert(name).inserted else { throw reader.error("\(name) is given twice") }
            switch name {
            case "security_levels":
                policy.securityLevels = try words(&reader, text, of: SecurityLevel.allCases)
            case "boot_states":
                policy.bootStates = try words(&reader, text, of: VerifiedBootState.allCases)
            case "origins": policy.origins = try words(&reader, text, of: KeyOrigin.allCases)
            case "provisioning": policy.provisioning = try provisioning(&reader, text)
            case "require_locked":
                guard case .boolean(let isRequired) = try reader.scalar(text) else {
                    throw reader.error("require_locked is neither true nor false")
                }
                policy.requiresLocked = isRequired
            case "min_os_patch_level":
                switch try reader.scalar(text) {
                case .number(let level): policy.osPatchLevelMin = level
                case .null: policy.osPatchLevelMin = nil
                case .string, .boolean:
                    throw reader.error("min_os_patch_level is no number such as 202601")
                }
            default: throw reader.error("there is no \(name)")
            }
        }
        try reader.end(text)
        return policy
    }

    /// One word, or a list; `any` stands for all.
    private static func provisioning(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> Set<Provisioning> {
        guard reader.peek(text) == UInt8(ascii: "\"") else {
            return try words(&reader, text, of: Provisioning.allCases)
        }
        let word = String(decoding: try reader.string(text), as: UTF8.self)
        if word == "any" { return Set(Provisioning.allCases) }
        return [try value(word, of: Provisioning.allCases, reader)]
    }

    private static func words<Value: Worded>(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>,
        of all: [Value]
    ) throws(JSONError) -> Set<Value> {
        var values: Set<Value> = []
        try reader.beginArray(text)
        while try reader.nextElement(text) {
            _ = reader.peek(text)
            let word = String(decoding: try reader.string(text), as: UTF8.self)
            values.insert(try value(word, of: all, reader))
        }
        return values
    }

    private static func value<Value: Worded>(
        _ word: String,
        of all: [Value],
        _ reader: JSONReader
    ) throws(JSONError) -> Value {
        let name = String(word.lowercased().map { $0 == "_" ? "-" : $0 })
        guard let value = all.first(where: { $0.word == name }) else {
            let words = all.map(\.word).joined(separator: ", ")
            throw reader.error("there is no \(word); use \(words)")
        }
        return value
    }
}

/// What has one word in the JSON of `verify android`.
protocol Worded: Hashable {
    var word: String { get }
}

extension SecurityLevel: Worded {
    var word: String {
        switch self {
        case .software: "software"
        case .trustedEnvironment: "tee"
        case .strongBox: "strongbox"
        }
    }
}

extension VerifiedBootState: Worded {
    var word: String {
        switch self {
        case .verified: "verified"
        case .selfSigned: "self-signed"
        case .unverified: "unverified"
        case .failed: "failed"
        }
    }
}

extension KeyOrigin: Worded {
    var word: String {
        switch self {
        case .generated: "generated"
        case .derived: "derived"
        case .imported: "imported"
        case .unknown: "unknown"
        case .securelyImported: "securely-imported"
        }
    }
}

extension Provisioning: Worded {
    var word: String { rawValue }
}
