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
        if device.isAndroid { return signatureText(clientDataHash, count, damage) }
        guard let damage else { return plainAssertion(clientDataHash, count) }
        return damagedAssertion(clientDataHash, count, damage)
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
        let number = count.rawValue
        for shift: UInt32 in [24, 16, 8, 0] {
            data.append(UInt8(truncatingIfNeeded: number >> shift))
        }
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
        _ count: SignCounter,
        _ damage: AssertionDamage
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
