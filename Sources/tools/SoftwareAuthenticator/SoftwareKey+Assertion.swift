internal import AppAttest
internal import Cryptography
internal import Encodings

extension SoftwareKey {
    /// The next assertion of this key, as `generateAssertion` gives it. Of an Android phone's key,
    /// the bytes of its text.
    ///
    /// - Parameters:
    ///   - clientDataHash: what the app hands over: SHA-256 of the client data. An app that forgets
    ///     to hash is one that hands over the client data itself.
    ///   - damage: what is wrong with it. The counter advances all the same, but for damage to the
    ///     counter.
    /// - Returns: Apple's CBOR object, 138…142 bytes before 27; or Android's text.
    public mutating func assertion(
        clientDataHash: [UInt8],
        damage: AssertionDamage? = nil
    ) -> [UInt8] {
        let count: SignCounter
        switch damage {
        case .counterRepeated: count = counter
        case .counterBehind: count = SignCounter(rawValue: max(counter.rawValue, 1) - 1)
        default:
            count = SignCounter(rawValue: counter.rawValue &+ 1)
            counter = count
        }
        if device.isAndroid { return signatureText(clientDataHash, count: count, damage: damage) }
        guard let damage else { return plainAssertion(clientDataHash, count) }
        return damagedAssertion(clientDataHash, count: count, damage: damage)
    }

    /// The next assertion as the field carries it: Apple's object in base64, Android's text as is.
    package mutating func assertionText(
        clientDataHash: [UInt8],
        damage: AssertionDamage? = nil
    ) -> [UInt8] {
        let assertion = assertion(clientDataHash: clientDataHash, damage: damage)
        return device.isAndroid ? assertion : Base64.encode(assertion)
    }

    /// The next assertion over client data, which this method hashes.
    public mutating func assertion(clientData: [UInt8], damage: AssertionDamage? = nil) -> [UInt8] {
        assertion(clientDataHash: SHA256.digest(of: clientData).array, damage: damage)
    }

    /// The usual case, written without a tree: load generators make tens of thousands a second.
    private func plainAssertion(_ clientDataHash: [UInt8], _ count: SignCounter) -> [UInt8] {
        let data = authenticatorData(count)
        let nonce = SHA256.digest(data.span, clientDataHash.span).bytes
        let signature = privateKey.signature(message: nonce.span)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(signature.count + data.count + 40)
        bytes.append(0xA2)
        bytes += Self.signatureHead
        bytes.append(UInt8(signature.count))
        bytes += signature
        bytes += Self.authenticatorDataHead
        // CBORValue encodes data of other lengths; an app can't choose the length.
        guard data.count > 23, data.count < 256 else {
            return object(signature: signature, data).encoded
        }
        bytes += [0x58, UInt8(data.count)]
        bytes += data
        return bytes
    }

    /// "signature", and the head of a byte string of 24…255 bytes: a DER signature of P-256 has
    /// 70…72, shorter ones being rare and never below 24.
    private static let signatureHead = CBORValue.text("signature").encoded + [0x58]
    private static let authenticatorDataHead = CBORValue.text("authenticatorData").encoded

    private func authenticatorData(_ count: SignCounter) -> [UInt8] {
        var data: [UInt8] = []
        data.reserveCapacity(37 + extensionMap.count)
        data += appIDHash
        data.append(device.shape.flags)
        data += Self.bytes(of: count)
        data += extensionMap
        return data
    }

    private func object(signature: [UInt8], _ data: [UInt8], more: Bool = false) -> CBORValue {
        let pairs: [CBORValue.Pair] = [
            .init(.text("signature"), .bytes(signature)),
            .init(.text("authenticatorData"), .bytes(data)),
        ]
        return .map(more ? pairs + [.init(.text("keyId"), .bytes(keyID.bytes))] : pairs)
    }

    private func damagedAssertion(
        _ clientDataHash: [UInt8],
        count: SignCounter,
        damage: AssertionDamage
    ) -> [UInt8] {
        var data = authenticatorData(count)
        switch damage {
        case .authenticatorDataShort: data = Array(data.prefix(36))
        case .extensionsMalformed: data += [0xBF, 0x00]
        case .otherApp:
            data.replaceSubrange(..<32, with: AppIDHash(appID: device.appID + ".other").bytes)
        default: break
        }
        let nonce = SHA256.digest(of: data + Self.signedHash(clientDataHash, damage)).array
        let signature = signature(over: nonce, damage)
        var bytes = object(signature: signature, data, more: damage == .memberAdded).encoded
        if damage == .trailingByte { bytes.append(0) }
        if damage == .truncated { bytes.removeLast() }
        return bytes
    }

    /// The client data hash that is signed in the place of the given one.
    static func signedHash(_ clientDataHash: [UInt8], _ damage: AssertionDamage?) -> [UInt8] {
        switch damage {
        case .otherClientData: SHA256.digest(of: clientDataHash + [0]).array
        case .hashedTwice: SHA256.digest(of: clientDataHash).array
        default: clientDataHash
        }
    }

    /// A signature over a message: Apple's nonce, or Android's lines.
    func signature(over message: [UInt8], _ damage: AssertionDamage?) -> [UInt8] {
        let key = damage == .otherKey ? neighbour : privateKey
        var signature =
            damage == .nonceAsDigest
            ? key.key.signature(overDigest: Array(message.prefix(32)).span)
            : key.signature(message: message.span)
        switch damage {
        case .signature: signature[signature.count - 1] ^= 1
        case .signatureRaw: signature = SignatureNumbers(signature).raw
        case .signatureZero: signature = [0x30, 0x06, 0x02, 0x01, 0x00, 0x02, 0x01, 0x00]
        case .highS: signature = SignatureNumbers(signature).withS(aboveHalf: true).der
        case .lowS: signature = SignatureNumbers(signature).withS(aboveHalf: false).der
        default: break
        }
        return signature
    }
}

/// The two numbers of an ECDSA signature on P-256, 32 bytes each, big-endian.
private struct SignatureNumbers {
    private var r: [UInt8]
    private var s: [UInt8]

    /// The order of the curve (SEC 2 §2.4.2).
    private static let order: [UInt8] = [
        0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF, 0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63,
        0x25, 0x51,
    ]

    /// Reads a signature that OpenSSL has made.
    init(_ der: [UInt8]) {
        let bytes = der.span
        do throws(DERError) {
            var outer = DERCursor(0..<bytes.count)
            var numbers = DERCursor(try outer.next(.sequence, in: bytes))
            r = Self.padded(der[try numbers.next(.integer, in: bytes)])
            s = Self.padded(der[try numbers.next(.integer, in: bytes)])
        } catch {
            preconditionFailure("SignatureNumbers: OpenSSL's signature is no DER")
        }
    }

    /// `r ‖ s`, 64 bytes.
    var raw: [UInt8] { r + s }

    /// SEQUENCE { INTEGER r, INTEGER s }.
    var der: [UInt8] { DEREncoder.sequence([Self.integer(r), Self.integer(s)]) }

    /// The signature with `s` or with `order − s`: the one above half the order, or the other. Both
    /// are valid.
    func withS(aboveHalf isAbove: Bool) -> SignatureNumbers {
        let other = Self.difference(Self.order, s)
        // s is above half the order when it is greater than order − s.
        let isAboveNow = other.lexicographicallyPrecedes(s)
        guard isAboveNow != isAbove else { return self }
        var numbers = self
        numbers.s = other
        return numbers
    }

    /// `left − right` of 32 bytes each, where `right` is not the greater one.
    private static func difference(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
        var result = left
        var borrow = 0
        for index in (0..<32).reversed() {
            let value = Int(left[index]) - Int(right[index]) - borrow
            borrow = value < 0 ? 1 : 0
            result[index] = UInt8(truncatingIfNeeded: value)
        }
        return result
    }

    private static func padded(_ integer: ArraySlice<UInt8>) -> [UInt8] {
        let digits = integer.drop { $0 == 0 }
        return [UInt8](repeating: 0, count: max(0, 32 - digits.count)) + digits
    }

    private static func integer(_ number: [UInt8]) -> [UInt8] {
        var digits = Array(number.drop { $0 == 0 })
        if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
        return DEREncoder.element(.integer, digits)
    }
}
