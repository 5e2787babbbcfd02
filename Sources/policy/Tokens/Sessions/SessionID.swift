internal import Cryptography
internal import Encodings

/// The parts of a session's id, read from its text. The code is not checked.
struct SessionID: Sendable {
    /// Bytes of an id, and characters of its text.
    static let byteCount = 33
    static let textCount = 44
    /// The bytes that the code covers.
    private static let signedCount = 17
    private static let version: UInt8 = 1
    private static let codeLabel = Array("portcullis-session-id".utf8)
    private static let secretLabel = Array("portcullis-session-secret".utf8)

    let serial: UInt64
    /// Seconds since 1970; the session is good before that second.
    let expiry: Int64
    let bytes: [UInt8]

    /// An id with its code.
    init(serial: UInt64, expiry: Int64, key: HMACSHA256.Key) {
        self.serial = serial
        self.expiry = expiry
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        bytes.append(Self.version)
        bytes.append(word: serial)
        bytes.append(word: UInt64(clamping: expiry))
        let code = key.code(Self.codeLabel.span, bytes.span).bytes
        for index in 0..<(Self.byteCount - Self.signedCount) { bytes.append(code[index]) }
        self.bytes = bytes
    }

    /// Reads the text of an id: 44 characters of base64url. `nil` for another length, alphabet or
    /// version, and for an expiry before 1970.
    init?(text: Span<UInt8>) {
        // The gateway writes one spelling, so it accepts one.
        guard text.count == Self.textCount, let bytes = Base64.decodeURL(text) else { return nil }
        self.init(bytes: bytes)
    }

    /// Reads the bytes of an id; `nil` for another count or version, and for an expiry before 1970.
    init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount, bytes[0] == Self.version,
            let expiry = Int64(exactly: bytes.span.word(at: 9))
        else { return nil }
        serial = bytes.span.word(at: 1)
        self.expiry = expiry
        self.bytes = bytes
    }

    var text: [UInt8] { Base64.encodeURL(bytes.span) }

    /// Whether the code is that of the bytes before it.
    func isAuthentic(under key: HMACSHA256.Key) -> Bool {
        isEqual(SessionID(serial: serial, expiry: expiry, key: key))
    }

    /// Compares two ids. The time does not depend on where they differ.
    func isEqual(_ other: SessionID) -> Bool {
        var difference: UInt8 = 0
        for index in 0..<Self.byteCount { difference |= bytes[index] ^ other.bytes[index] }
        return difference == 0
    }

    func secret(under key: HMACSHA256.Key) -> SHA256Digest {
        key.code(Self.secretLabel.span, bytes.span)
    }
}
