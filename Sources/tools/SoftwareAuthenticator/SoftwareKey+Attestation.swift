internal import AppAttest
internal import Cryptography
internal import Encodings
internal import RequestBinding
public import Signatures

extension SoftwareKey {
    /// The content of `POST …/keys` that enrols this key, for a challenge of the gateway.
    ///
    /// - Parameters:
    ///   - challenge: the text of the enrolment challenge.
    ///   - context: what the app hands in with it, 1…256 bytes; `nil` for nothing.
    ///   - clientDataHash: what an app of Apple's hands to `attestKey`; `nil` for SHA-256 of the
    ///     client data.
    ///   - time: when the key is attested; in the lifetime of the authority.
    /// - Returns: a JSON document.
    public func enrolment(
        challenge: String,
        context: [UInt8]? = nil,
        clientDataHash: [UInt8]? = nil,
        at time: UnixTime
    ) -> String {
        var json = JSONWriter()
        json.object { json in
            if device.isAndroid {
                json.member("platform", DevicePlatform.android.rawValue)
                json.member("key_id", keyID.base64)
                let chain = chain(challenge: challenge, context: context, at: time)
                json.texts("chain", chain.map { Base64.text($0) })
            } else {
                json.member("key_id", keyID.base64)
                let object =
                    clientDataHash.map { attestation(clientDataHash: $0, at: time) }
                    ?? attestation(challenge: challenge, context: context, at: time)
                json.member("attestation", Base64.text(object))
            }
            json.member("challenge", challenge)
            if let context { json.member("context", Base64.text(context)) }
        }
        return json.text
    }

    /// An attestation of this key for a challenge of the gateway, as an app makes it that hands
    /// SHA-256 of the client data to `attestKey` (`EnrolmentLines` of RequestBinding).
    ///
    /// - Parameters:
    ///   - challenge: the text of the enrolment challenge.
    ///   - context: what the app hands in with it, 1…256 bytes; `nil` for nothing.
    ///   - time: when Apple issues it; in the lifetime of the authority.
    /// - Returns: the CBOR object.
    public func attestation(
        challenge: String,
        context: [UInt8]? = nil,
        at time: UnixTime
    ) -> [UInt8] {
        let clientData = EnrolmentLines.clientData(
            challenge: challenge,
            contextDigest: context.map { SHA256.digest(of: $0).array }
        )
        return attestation(clientDataHash: SHA256.digest(of: clientData).array, at: time)
    }

    /// An attestation of this key, as `attestKey` gives it.
    ///
    /// The leaf is valid from a day before to two days after `time`, as genuine ones are.
    ///
    /// - Parameters:
    ///   - clientDataHash: what the app hands over, of any length: SHA-256 of the challenge
    ///     for most apps, the challenge itself for some.
    ///   - time: when Apple issues it; in the lifetime of the authority.
    ///   - damage: what is wrong with it.
    ///   - receiptDamage: what is wrong with the receipt in it, which the attestation does not
    ///     cover.
    /// - Returns: the CBOR object, about 5 KiB.
    public func attestation(
        clientDataHash: [UInt8],
        at time: UnixTime,
        damage: AttestationDamage? = nil,
        receiptDamage: ReceiptDamage? = nil
    ) -> [UInt8] {
        let authority = damage == .untrustedRoot ? device.authority.stranger : device.authority
        let authData = attestedData(damage)
        var signedHash = clientDataHash
        if damage == .otherNonce { signedHash = SHA256.digest(of: clientDataHash + [0]).array }
        if damage == .hashedTwice { signedHash = SHA256.digest(of: clientDataHash).array }
        let nonce = SHA256.digest(of: authData + signedHash).array
        let leaf = leaf(nonce: nonce, at: time, by: authority, damage: damage)
        var leafDER = leaf.der
        // The last byte is one of the signature's s; DER stays DER.
        if damage == .leafSignature { leafDER[leafDER.count - 1] ^= 1 }
        var certificates = [leafDER, authority.intermediate.der]
        if damage == .swappedCertificates { certificates.reverse() }
        if damage == .rootIncluded { certificates.append(authority.root.der) }
        let receipt = receipt(
            .attest,
            leaf: leaf,
            clientHash: clientDataHash,
            at: time,
            changes: ReceiptChanges(damage: receiptDamage)
        )
        let statement = CBORValue.map([
            .init(.text("x5c"), .array(certificates.map { .bytes($0) })),
            .init(.text("receipt"), .bytes(receipt)),
        ])
        let format = damage == .otherFormat ? "packed" : "apple-appattest"
        var object = CBORValue.map([
            .init(.text("fmt"), .text(format)),
            .init(.text("attStmt"), statement),
            .init(.text("authData"), .bytes(authData)),
        ]).encoded
        if damage == .trailingByte { object.append(0) }
        if damage == .truncated { object.removeLast() }
        return object
    }

    /// Authenticator data: rpIdHash 32, flags 1, counter 4, AAGUID 16, length 2, credential id 32,
    /// COSE key 77, then what the shape adds.
    private func attestedData(_ damage: AttestationDamage?) -> [UInt8] {
        let hash =
            damage == .otherApp
            ? AppIDHash(appID: device.appID + ".other").bytes : appIDHash
        let counter: UInt32 = damage == .counterNotZero ? 1 : 0
        let credential = damage == .otherCredential ? KeyID(of: neighbour.publicKey) : keyID
        let point = damage == .otherCOSEKey ? neighbour.publicKey : publicKey
        var bytes = hash + [device.shape.flags]
        bytes += Self.bytes(of: SignCounter(rawValue: counter))
        bytes += aaguid(damage)
        bytes += [0, damage == .credentialLength ? 33 : 32] + credential.bytes
        bytes += Self.coseKey(of: point) + extensionMap
        if damage == .extensionsMalformed { bytes += [0xBF, 0x00] }
        if damage == .extensionsTrailing { bytes += extensionMap.isEmpty ? [0xA0, 0] : [0] }
        return bytes
    }

    private func aaguid(_ damage: AttestationDamage?) -> [UInt8] {
        switch damage {
        case .sandboxEnvironment: Array("appattestsandbox".utf8)
        case .otherEnvironment:
            switch device.environment {
            case .production: AttestationEnvironment.development.aaguid
            case .development: AttestationEnvironment.production.aaguid
            }
        default: device.environment.aaguid
        }
    }

    /// RFC 9053 §7.1.1: {1: 2, 3: −7, −1: 1, −2: X, −3: Y}.
    private static func coseKey(of key: P256PublicKey) -> [UInt8] {
        let point = key.x963
        return CBORValue.map([
            .init(.integer(1), .integer(2)),
            .init(.integer(3), .integer(-7)),
            .init(.integer(-1), .integer(1)),
            .init(.integer(-2), .bytes(Array(point[1..<33]))),
            .init(.integer(-3), .bytes(Array(point[33..<65]))),
        ]).encoded
    }

    /// The certificate of this key at a time.
    func leaf(
        nonce: [UInt8]?,
        at time: UnixTime,
        by authority: SoftwareAuthority,
        damage: AttestationDamage?
    ) -> X509Certificate {
        let certified = damage == .otherKeyCertified ? neighbour.publicKey : publicKey
        let day: Int64 = 86_400
        let start = time.advanced(bySeconds: damage == .leafNotYetValid ? 1 : -day)
        let end = time.advanced(bySeconds: damage == .leafExpired ? -1 : 2 * day)
        return CertificateBuilder(
            subject: .init(
                commonName: Hex.text(KeyID(of: certified).bytes),
                organization: authority.root.subject[.organization],
                organizationalUnit: "AAA Certification"
            ),
            // Apple's serial numbers are milliseconds.
            serial: UInt64(clamping: time.seconds) * 1_000,
            validity: start...end,
            isAuthority: false,
            extensions: LeafExtensions.all(
                device,
                nonce: damage == .nonceMissing ? nil : nonce,
                isMacOS: device.shape.isMacOS || damage == .accessControl,
                accessControl: damage == .accessControl
                    ? LeafExtensions.iPhoneAccessControl : nil
            )
        ).signed(for: certified, by: authority.intermediateKey, issuer: authority.intermediate)
    }
}
