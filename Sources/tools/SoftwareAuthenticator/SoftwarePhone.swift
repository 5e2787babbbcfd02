internal import Cryptography
internal import Encodings
public import KeyAttestation
internal import RequestBinding
public import Signatures

/// What an Android phone says of itself and of its keys. All of it can be set, so that a gateway is
/// shown phones that it must refuse.
public struct SoftwarePhone: Hashable, Sendable {
    /// The phone's name, or that of its batch in the factory: phones of one name attest with one
    /// key.
    public var name = "phone"
    /// How the phone came to be certified: the shape of its chains.
    public var provisioning = Provisioning.rkp
    /// SHA-256 of the certificates that signed the app.
    public var signers = [Self.signer]
    /// Where its keys live.
    public var level = SecurityLevel.trustedEnvironment
    /// What was checked when the system was started.
    public var bootState = VerifiedBootState.verified
    /// The key that signed the system.
    public var bootKey = [UInt8](repeating: 0, count: 32)
    /// Whether the bootloader is locked.
    public var isLocked = true
    /// Where its keys come from.
    public var origin = KeyOrigin.generated
    /// The system's patch level, such as 202601; `nil` for the month in which a chain is made.
    public var osPatchLevel: UInt32?
    /// What Google says of the last 30 days; `nil` where it says nothing. Only a phone with RKP has
    /// it.
    public var certificatesIssued: UInt64? = 8
    /// The serial number of the certificate whose key attests; `nil` for one that depends on the
    /// name. Those of the other certificates are the same for all phones of a kind, and a leaf's
    /// is 1: `UnverifiedKeyAttestation.serials` reads them all.
    public var serial: UInt64?

    /// The signer of an app, unless another is set: 32 times 0x07.
    public static let signer = [UInt8](repeating: 7, count: 32)

    /// A phone that may enrol everywhere.
    public init() {}

    var attesterSerial: UInt64 {
        let hash = SHA256.digest(of: Array(name.utf8)).array
        return serial ?? hash.prefix(7).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

extension SoftwareDevice {
    /// The chain that an Android phone makes with a key, whose private half may be elsewhere: DER,
    /// the leaf first, without the root.
    ///
    /// - Parameters:
    ///   - key: the key that is attested.
    ///   - attestationChallenge: what the app gave to `setAttestationChallenge`.
    ///   - time: when the key is made. Certificates of RKP are valid from a day before to two weeks
    ///     after.
    /// - Returns: certificates, about 3 KiB together.
    public func chain(
        for key: P256PublicKey,
        attestationChallenge: [UInt8],
        at time: UnixTime
    ) -> [[UInt8]] {
        PhoneChain(of: key, on: self, challenge: attestationChallenge, at: time)
            .certificates.map(\.der)
    }
}

extension SoftwareKey {
    /// The chain of this key for a challenge of the gateway, as an app makes it that hands SHA-256
    /// of the client data to `setAttestationChallenge` (`EnrolmentLines` of RequestBinding).
    ///
    /// - Parameters:
    ///   - challenge: the text of the enrolment challenge.
    ///   - context: what the app hands in with it, 1…256 bytes; `nil` for nothing.
    ///   - time: when the key is made; in the lifetime of the authority.
    /// - Returns: certificates in DER, the leaf first, without the root.
    public func chain(challenge: String, context: [UInt8]? = nil, at time: UnixTime) -> [[UInt8]] {
        let clientData = EnrolmentLines.clientData(
            challenge: challenge,
            contextDigest: context.map { SHA256.digest(of: $0).array }
        )
        return device.chain(
            for: publicKey,
            attestationChallenge: SHA256.digest(of: clientData).array,
            at: time
        )
    }

    /// `v1.COUNTER.BASE64URL(signature)` over the lines of `UnverifiedKeySignature`.
    func signatureText(
        _ clientDataHash: [UInt8],
        count: SignCounter,
        damage: AssertionDamage?
    ) -> [UInt8] {
        let message = UnverifiedKeySignature.message(
            package: damage == .otherApp ? device.appID + ".other" : device.appID,
            counter: count,
            clientDataHash: Self.signedHash(clientDataHash, damage)
        )
        guard let message else {
            preconditionFailure("SoftwareKey: no package name, or no SHA-256 of client data")
        }
        let number = damage == .authenticatorDataShort ? "" : String(count.rawValue)
        let version = damage == .extensionsMalformed ? "v2" : "v1"
        var text = Array("\(version).\(number)".utf8)
        guard damage != .truncated else { return text }
        text += [UInt8(ascii: ".")] + Base64.encodeURL(signature(over: message, damage))
        if damage == .memberAdded { text += Array(".AA".utf8) }
        if damage == .trailingByte { text.append(UInt8(ascii: "=")) }
        return text
    }
}
