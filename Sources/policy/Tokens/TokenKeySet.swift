internal import Crypto
internal import CryptoExtras
internal import Encodings
internal import Signatures

/// The public keys of an issuer: a JSON Web Key Set (RFC 7517 §5), read once.
///
/// Keys of other kinds than those of ``TokenAlgorithm`` are skipped, as §5 asks, and so are keys
/// for encryption. Everything else in a key that can't be right refuses the set as a whole.
package struct TokenKeySet: Sendable {
    /// Why a text is no set of keys.
    package struct Fault: Error, Hashable, Sendable {
        /// For people; no part of the text.
        package let detail: String
    }

    package static let bytesMax = 256 << 10
    /// The most keys that are kept. Issuers have two to ten.
    package static let keysMax = 64
    /// The longest `kid`.
    package static let idBytesMax = 256
    /// RFC 7518 §3.3, and what a verification may cost.
    private static let modulusBytes = 256...1_024

    /// A key, with the algorithm that its kind decides.
    private enum Key: Sendable {
        case es256(P256PublicKey)
        case rs256(_RSA.Signing.PublicKey)
        case edDSA(Curve25519.Signing.PublicKey)

        var algorithm: TokenAlgorithm {
            switch self {
            case .es256: .es256
            case .rs256: .rs256
            case .edDSA: .edDSA
            }
        }

        /// Whether the signature is one of this key over these bytes. RFC 7518 §3.3 and §3.4, RFC
        /// 8037 §3.1.
        func isValid(_ signature: [UInt8], over message: Span<UInt8>) -> Bool {
            switch self {
            case .es256(let key): return key.isValidJOSESignature(signature.span, message: message)
            case .rs256(let key):
                return message.withUnsafeBytes { bytes in
                    key.isValidSignature(
                        _RSA.Signing.RSASignature(rawRepresentation: signature),
                        for: Array(bytes),
                        padding: .insecurePKCS1v1_5
                    )
                }
            case .edDSA(let key):
                return message.withUnsafeBytes { key.isValidSignature(signature, for: Array($0)) }
            }
        }
    }

    private struct Entry: Sendable {
        let id: [UInt8]?
        let key: Key
    }

    private let entries: [Entry]

    /// The number of keys that can verify tokens.
    package var count: Int { entries.count }

    package init(json text: [UInt8]) throws(Fault) {
        guard text.count <= Self.bytesMax else { throw Fault(detail: "it is too long") }
        do throws(JSONError) {
            entries = try Self.read(text.span)
        } catch {
            throw Fault(detail: "\(error.text) at \(error.column)")
        }
        guard !entries.isEmpty else { throw Fault(detail: "it has no usable key") }
    }

    /// Whether the signature is one over these bytes by the key that a token names; `nil` without
    /// such a key.
    package func isValid(
        _ signature: [UInt8],
        over message: Span<UInt8>,
        keyID: [UInt8]?,
        algorithm: TokenAlgorithm
    ) -> Bool? {
        key(keyID, algorithm)?.isValid(signature, over: message)
    }

    /// The key that a token names. A token without a `kid` means the only key of its algorithm.
    private func key(_ id: [UInt8]?, _ algorithm: TokenAlgorithm) -> Key? {
        let able = entries.filter { $0.key.algorithm == algorithm }
        guard let id else { return able.count == 1 ? able.first?.key : nil }
        return able.first { $0.id == id }?.key
    }

    private static func read(_ text: Span<UInt8>) throws(JSONError) -> [Entry] {
        var reader = JSONReader()
        var entries: [Entry]?
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            guard name == Array("keys".utf8) else {
                try reader.skipValue(text, depth: 1)
                continue
            }
            guard entries == nil else { throw reader.error("keys is given twice") }
            entries = try list(&reader, text)
        }
        try reader.end(text)
        guard let entries else { throw reader.error("keys is missing") }
        return entries
    }

    private static func list(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> [Entry] {
        var entries: [Entry] = []
        try reader.beginArray(text)
        while try reader.nextElement(text) {
            let members = try KeyMembers(&reader, text)
            guard let entry = try entry(members, reader) else { continue }
            let isRepeated = entries.contains {
                $0.id == entry.id && $0.key.algorithm == entry.key.algorithm && entry.id != nil
            }
            guard !isRepeated else { throw reader.error("two keys have one kid") }
            guard entries.count < keysMax else { throw reader.error("too many keys") }
            entries.append(entry)
        }
        return entries
    }

    /// `nil` for a key that is for something else.
    private static func entry(
        _ members: KeyMembers,
        _ reader: JSONReader
    ) throws(JSONError) -> Entry? {
        if let use = members["use"], use != "sig" { return nil }
        // RFC 7517 §4.3
        if let operations = members.operations, !operations.contains("verify") { return nil }
        let key: Key
        switch (members["kty"], members["crv"]) {
        case ("EC", "P-256"):
            guard let x = members.bytes("x"), let y = members.bytes("y"), x.count == 32,
                y.count == 32, let point = P256PublicKey(raw: (x + y).span)
            else { throw reader.error("a key that is no point on P-256") }
            key = .es256(point)
        case ("OKP", "Ed25519"):
            guard let x = members.bytes("x"), x.count == 32,
                let point = try? Curve25519.Signing.PublicKey(rawRepresentation: x)
            else { throw reader.error("a key that is no point on Ed25519") }
            key = .edDSA(point)
        case ("RSA", _):
            guard let n = members.bytes("n"), let e = members.bytes("e"),
                modulusBytes.contains(n.count), (1...8).contains(e.count),
                let made = try? _RSA.Signing.PublicKey(n: n, e: e)
            else { throw reader.error("a key that is no RSA key of 2048…8192 bits") }
            key = .rs256(made)
        default: return nil
        }
        // A key that is for another algorithm, such as PS256, is not used with this one.
        if let stated = members["alg"], stated != key.algorithm.rawValue { return nil }
        return Entry(id: members["kid"].map { Array($0.utf8) }, key: key)
    }

    /// The members of a key that are read; each once.
    private struct KeyMembers {
        private static let names: Set<String> = [
            "kty", "crv", "use", "alg", "kid", "x", "y", "n", "e",
        ]
        private var texts: [String: String] = [:]
        /// `key_ops`: what the key is for, besides `use`.
        private(set) var operations: [String]?

        init(_ reader: inout JSONReader, _ text: Span<UInt8>) throws(JSONError) {
            try reader.beginObject(text)
            while let bytes = try reader.nextName(text) {
                let name = String(decoding: bytes, as: UTF8.self)
                if name == "key_ops" {
                    guard operations == nil else { throw reader.error("key_ops is given twice") }
                    operations = try Self.list(&reader, text)
                    continue
                }
                guard Self.names.contains(name) else {
                    try reader.skipValue(text, depth: 3)
                    continue
                }
                guard texts[name] == nil else { throw reader.error("\(name) is given twice") }
                guard case .string(let value) = try reader.scalar(text),
                    let string = String(validating: value, as: UTF8.self)
                else { throw reader.error("\(name) is no string") }
                guard name != "kid" || (1...idBytesMax).contains(value.count) else {
                    throw reader.error("a kid that is empty or too long")
                }
                texts[name] = string
            }
        }

        private static func list(
            _ reader: inout JSONReader,
            _ text: Span<UInt8>
        ) throws(JSONError) -> [String] {
            var list: [String] = []
            try reader.beginArray(text)
            while try reader.nextElement(text) {
                guard case .string(let value) = try reader.scalar(text) else {
                    throw reader.error("key_ops is no list of strings")
                }
                list.append(String(decoding: value, as: UTF8.self))
            }
            return list
        }

        subscript(name: String) -> String? { texts[name] }

        func bytes(_ name: String) -> [UInt8]? {
            texts[name].flatMap { Base64.decodeURL(Array($0.utf8).span) }
        }
    }
}
