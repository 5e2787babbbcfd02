internal import Cryptography
internal import Encodings

/// The parts of a challenge, read from its text. The code is not checked.
package struct UnverifiedChallenge: Sendable {
    /// Bytes of a challenge, and characters of its text.
    package static let byteCount = 42
    package static let textCount = 56
    /// The bytes that the code covers.
    static let signedCount = 26
    static let version: UInt8 = 1

    package let purpose: ChallengePurpose
    /// The start of a gateway that issued it.
    package let epoch: UInt64
    package let serial: UInt64
    /// Seconds since 1970; the challenge is good before that second.
    package let expiry: Int64
    let bytes: [UInt8]

    /// Reads the text of a challenge: 56 characters of base64url.
    ///
    /// `nil` for another length, another alphabet, version or purpose, and for an expiry before
    /// 1970.
    package init?(text: Span<UInt8>) {
        // The gateway writes one spelling, so it accepts one.
        guard text.count == Self.textCount, let bytes = Base64.decodeURL(text),
            bytes.count == Self.byteCount, bytes[0] == Self.version,
            let purpose = ChallengePurpose(rawValue: bytes[1]),
            let expiry = Int64(exactly: bytes.span.word(at: 18))
        else { return nil }
        self.purpose = purpose
        epoch = bytes.span.word(at: 2)
        serial = bytes.span.word(at: 10)
        self.expiry = expiry
        self.bytes = bytes
    }

    /// The bytes that the code covers.
    static func signed(
        _ purpose: ChallengePurpose,
        epoch: UInt64,
        serial: UInt64,
        expiry: Int64
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(byteCount)
        bytes.append(version)
        bytes.append(purpose.rawValue)
        bytes.append(word: epoch)
        bytes.append(word: serial)
        bytes.append(word: UInt64(clamping: expiry))
        return bytes
    }
}

extension UnverifiedChallenge {
    /// A challenge's text with its code.
    static func text(
        of purpose: ChallengePurpose,
        epoch: UInt64,
        serial: UInt64,
        expiry: Int64,
        key: HMACSHA256.Key
    ) -> [UInt8] {
        var bytes = signed(purpose, epoch: epoch, serial: serial, expiry: expiry)
        let code = key.code(bytes.span).bytes
        for index in 0..<(byteCount - signedCount) { bytes.append(code[index]) }
        return Base64.encodeURL(bytes.span)
    }

    /// Whether the code is that of the bytes before it. The time does not depend on where they
    /// differ.
    func isAuthentic(under key: HMACSHA256.Key) -> Bool {
        let code = key.code(bytes.span.extracting(0..<Self.signedCount)).bytes
        var difference: UInt8 = 0
        for index in 0..<(Self.byteCount - Self.signedCount) {
            difference |= code[index] ^ bytes[Self.signedCount + index]
        }
        return difference == 0
    }
}
