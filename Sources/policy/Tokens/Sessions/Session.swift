internal import Cryptography
package import DeviceKey
internal import Encodings
package import RequestBinding
package import Signatures
internal import Synchronization

/// One open session. Shared by the event loops; only its window changes.
package final class Session: Sendable {
    /// The key whose signature opened it.
    package let keyID: KeyID
    /// That signature. It says which build of the app has opened the session.
    package let evidence: VerifiedEvidence
    let id: SessionID
    private let secret: HMACSHA256.Key
    private let window: Mutex<SequenceWindow>

    init(
        _ id: SessionID,
        _ secret: SHA256Digest,
        window: SequenceWindow,
        keyID: KeyID,
        evidence: VerifiedEvidence
    ) {
        self.id = id
        self.keyID = keyID
        self.evidence = evidence
        let bytes = secret.bytes
        self.secret = HMACSHA256.Key(bytes.span)
        self.window = Mutex(window)
    }

    /// The signature of client data.
    package func signature(of lines: Span<UInt8>) -> SHA256Digest { secret.code(lines) }

    /// The signature of client data in two pieces.
    package func signature(of first: Span<UInt8>, _ second: Span<UInt8>) -> SHA256Digest {
        secret.code(first, second)
    }

    /// Whether the session is no longer good. A session that was found may expire before the
    /// content arrives.
    ///
    /// - now: the wall clock, seconds since 1970.
    package func isOver(at now: Int64) -> Bool { now >= id.expiry }

    /// The bytes of its id, by which another process of this gateway knows it.
    package var idBytes: [UInt8] { id.bytes }

    /// Whether a number is free now.
    package func admits(_ number: SequenceNumber) -> Bool {
        window.withLock { $0.admits(number) }
    }

    /// Uses a number: `true` for exactly one of all callers.
    ///
    /// Call it after the signature over the number was verified.
    package func use(_ number: SequenceNumber) -> Bool { window.withLock { $0.use(number) } }

    func writeWindow(to out: inout ByteWriter) { window.withLock { $0.write(to: &out) } }
}

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

/// Sliding-window bitmap of the used sequence numbers of a session.
///
/// It is the replay window of IPsec (RFC 4303 §3.4.3) with the bitmap as a ring (RFC 6479), so that
/// no bits are shifted.
struct SequenceWindow: Sendable {
    /// The widest window that is read: as wide as the configuration allows.
    private static let widthMax = 4_096

    /// The greatest distance of a number below the highest.
    private let width: UInt64
    /// The highest number used; 0 at first, which is no number.
    private(set) var highest: UInt64 = 0
    /// The bit of a number is at its remainder by the count of bits. There is one more bit than the
    /// width, for the highest number.
    private var words: [UInt64]

    /// - width: at least 1.
    init(width: Int) {
        precondition(width >= 1, "SequenceWindow: a window of nothing")
        self.width = UInt64(width)
        words = Array(repeating: 0, count: width / 64 + 1)
    }

    /// Whether the number is free.
    func admits(_ number: SequenceNumber) -> Bool {
        let number = number.rawValue
        guard number <= highest else { return true }
        guard highest - number <= width else { return false }
        let (word, bit) = place(of: number)
        return words[word] & bit == 0
    }

    /// Uses the number; answers whether it was free.
    mutating func use(_ number: SequenceNumber) -> Bool {
        guard admits(number) else { return false }
        if number.rawValue > highest { advance(to: number.rawValue) }
        let (word, bit) = place(of: number.rawValue)
        words[word] |= bit
        return true
    }

    /// Clears the bits of the numbers above the highest, which stood for lower ones until now.
    private mutating func advance(to number: UInt64) {
        if number - highest >= UInt64(words.count) * 64 {
            for index in words.indices { words[index] = 0 }
        } else {
            for passed in (highest + 1)...number {
                let (word, bit) = place(of: passed)
                words[word] &= ~bit
            }
        }
        highest = number
    }

    func write(to out: inout ByteWriter) {
        out.word(width)
        out.word(highest)
        for word in words { out.word(word) }
    }

    /// Reads the state that another process has written. Its windows may have another width.
    /// A number that its window would refuse counts as used.
    init(width: Int, from bytes: inout ByteReader) throws(ByteReader.Fault) {
        guard let widthBefore = Int(exactly: try bytes.word()),
            (1...Self.widthMax).contains(widthBefore)
        else { throw ByteReader.Fault() }
        var before = SequenceWindow(width: widthBefore)
        before.highest = try bytes.word()
        guard before.highest <= SequenceNumber.max.rawValue else { throw ByteReader.Fault() }
        for index in before.words.indices { before.words[index] = try bytes.word() }
        guard width != widthBefore else {
            self = before
            return
        }
        self.init(width: width)
        highest = before.highest
        let oldest = highest - min(highest, self.width)
        for value in oldest...highest {
            guard let number = SequenceNumber(value), !before.admits(number) else { continue }
            let (word, bit) = place(of: value)
            words[word] |= bit
        }
    }

    private func place(of number: UInt64) -> (word: Int, bit: UInt64) {
        (Int(number / 64 % UInt64(words.count)), 1 << (number % 64))
    }
}
