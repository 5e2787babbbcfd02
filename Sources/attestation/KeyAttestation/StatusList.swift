internal import Encodings

/// Google's list of attestation certificates that are not valid any more.
///
///     {"entries": {SERIAL: {"status": "REVOKED" or "SUSPENDED", "reason": …, …}, …}}
///
/// android.googleapis.com/attestation/status [Android]. The list holds what is not valid and
/// nothing else, so an entry counts whatever its status, also one that is not known here. Google's
/// library lets suspended certificates pass; here they are refused. Text that is no such list is an
/// error and never an empty list.
public struct StatusList: Hashable, Sendable {
    /// What the list says of a certificate, for people.
    public struct Entry: Hashable, Sendable, CustomStringConvertible {
        /// The longest word that is kept; a longer one counts as `?`.
        public static let wordBytesMax = 32

        /// `REVOKED` or `SUSPENDED`, or a word that is not known here.
        public let status: String
        /// Such as `KEY_COMPROMISE`; `nil` where the list does not say.
        public let reason: String?

        /// Status and reason: `REVOKED (KEY_COMPROMISE)`.
        public var description: String { reason.map { "\(status) (\($0))" } ?? status }

        /// Logs and exports have it, so other bytes than those of Google's words are not kept.
        fileprivate static func word(_ bytes: [UInt8]) -> String {
            let isWord = bytes.allSatisfy { byte in (0x41...0x5A).contains(byte) || byte == 0x5F }
            guard isWord, (1...wordBytesMax).contains(bytes.count) else { return "?" }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    /// The longest list that is read: 16 MiB. Google's had 2,000 entries in 250 KB in 2026.
    public static let bytesMax = 16 << 20

    private let entries: [CertificateSerial: Entry]

    /// A list without entries, for a caller that has none and says so.
    public static let empty = StatusList(entries: [:])

    private init(entries: [CertificateSerial: Entry]) { self.entries = entries }

    /// Reads a list. Throws where it can't be read to its end.
    public init(json: [UInt8]) throws(StatusListError) {
        guard json.count <= Self.bytesMax else {
            throw StatusListError("\(json.count) bytes are too many")
        }
        guard String(utf8: json) != nil else { throw StatusListError("not UTF-8") }
        do throws(JSONError) {
            entries = try Self.entries(ContiguousArray(json).span)
        } catch {
            throw StatusListError(error.description)
        }
    }

    /// How many certificates are in the list.
    public var count: Int { entries.count }

    /// The first of these serials that is in the list: of a chain that arrives, or of one that was
    /// accepted earlier under an older list.
    public func revoked(among serials: some Sequence<CertificateSerial>) -> CertificateSerial? {
        serials.first { entries[$0] != nil }
    }

    /// What the list says of a certificate; `nil` for one that is not in it.
    public subscript(serial: CertificateSerial) -> Entry? { entries[serial] }

    private static func entries(
        _ text: Span<UInt8>
    ) throws(JSONError) -> [CertificateSerial: Entry] {
        var reader = JSONReader()
        var entries: [CertificateSerial: Entry]?
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            guard name == Array("entries".utf8) else {
                try reader.skipValue(text, depth: 1)
                continue
            }
            guard entries == nil else { throw reader.error("entries are given twice") }
            var found: [CertificateSerial: Entry] = [:]
            try reader.beginObject(text)
            while let name = try reader.nextName(text) {
                guard let serial = CertificateSerial(String(decoding: name, as: UTF8.self)) else {
                    throw reader.error("an entry is named by no serial number")
                }
                let entry = try entry(&reader, text)
                // Two spellings of one serial: the first one counts.
                if found[serial] == nil { found[serial] = entry }
            }
            entries = found
        }
        try reader.end(text)
        guard let entries else { throw reader.error("entries are missing") }
        return entries
    }

    private static func entry(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> Entry {
        var (status, reason): (String?, String?)
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            switch name {
            case Array("status".utf8):
                guard status == nil, case .string(let word) = try reader.scalar(text) else {
                    throw reader.error("a status is no text, or given twice")
                }
                status = Entry.word(word)
            case Array("reason".utf8):
                // It decides nothing, so any value is read.
                guard reader.peek(text) == UInt8(ascii: "\""),
                    case .string(let word) = try reader.scalar(text)
                else {
                    try reader.skipValue(text, depth: 3)
                    continue
                }
                reason = Entry.word(word)
            default: try reader.skipValue(text, depth: 3)
            }
        }
        guard let status else { throw reader.error("an entry has no status") }
        return Entry(status: status, reason: reason)
    }
}

/// Why a text is no status list.
public struct StatusListError: Error, Hashable, Sendable {
    /// What is wrong, for people.
    public let detail: String

    init(_ detail: String) { self.detail = detail }
}

/// The serial number of a certificate, as Google's list spells it: hexadecimal in lower case
/// without leading zeros.
///
/// Two spellings of one number are equal. Digits alone are hexadecimal, too: the serials of a
/// factory are decimal digits that are written as hexadecimal ones.
public struct CertificateSerial: Hashable, Sendable, CustomStringConvertible {
    /// The number.
    public let description: String

    /// Reads hexadecimal in either case, with any number of leading zeros; `nil` for other text.
    public init?(_ text: some StringProtocol) {
        guard !text.isEmpty, text.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { return nil }
        let digits = text.drop { $0 == "0" }
        description = digits.isEmpty ? "0" : digits.lowercased()
    }

    /// The number that ``description`` wrote.
    package init(written text: some StringProtocol) { description = String(text) }

    /// The number of an INTEGER's bytes, big-endian. No bit is a sign: serials are not negative.
    init(bytes: [UInt8]) {
        let digits = Hex.text(bytes).drop { $0 == "0" }
        description = digits.isEmpty ? "0" : String(digits)
    }
}

extension CertificateSerial: Codable {
    /// Reads the hexadecimal text.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(otherwise: "not a serial number in hexadecimal") {
            CertificateSerial($0)
        }
    }

    /// Writes the hexadecimal text.
    public func encode(to encoder: any Encoder) throws {
        try encoder.encode(text: description)
    }
}
