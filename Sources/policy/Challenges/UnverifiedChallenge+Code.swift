internal import ByteCoding
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
        return Base64.encodeURL(octets.span)
    }

    /// Whether the code is that of the bytes before it, decided in a time that does not depend on
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
