internal import Cryptography

extension UnverifiedChallenge {
    /// A challenge's text with its code.
    static func text(
        of purpose: ChallengePurpose,
        epoch: UInt64,
        serial: UInt64,
        expiry: Int64,
        key: HMACSHA256.Key
    ) -> [UInt8] {
        var octets = signed(purpose, epoch: epoch, serial: serial, expiry: expiry)
        let code = key.code(octets.span).bytes
        for index in 0..<(octetCount - signedCount) { octets.append(code[index]) }
        return text(of: octets.span)
    }

    private static let digits = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8
    )

    /// 42 octets as 56 characters. A response may carry a fresh challenge, so this is on the path
    /// of every request; the encoder for any sequence takes five times as long.
    private static func text(of octets: Span<UInt8>) -> [UInt8] {
        precondition(octets.count == octetCount, "UnverifiedChallenge: octets without a remainder")
        var text = [UInt8](repeating: 0, count: textCount)
        let digits = digits.span
        for group in 0..<(octetCount / 3) {
            let place = group * 3
            let bits =
                Int(octets[place]) << 16 | Int(octets[place + 1]) << 8 | Int(octets[place + 2])
            text[group * 4] = digits[bits >> 18]
            text[group * 4 + 1] = digits[bits >> 12 & 63]
            text[group * 4 + 2] = digits[bits >> 6 & 63]
            text[group * 4 + 3] = digits[bits & 63]
        }
        return text
    }

    /// Whether the code is that of the octets before it, decided in a time that does not depend on
    /// where they differ.
    func isAuthentic(under key: HMACSHA256.Key) -> Bool {
        let code = key.code(octets.span.extracting(0..<Self.signedCount)).bytes
        var difference: UInt8 = 0
        for index in 0..<(Self.octetCount - Self.signedCount) {
            difference |= code[index] ^ octets[Self.signedCount + index]
        }
        return difference == 0
    }
}
