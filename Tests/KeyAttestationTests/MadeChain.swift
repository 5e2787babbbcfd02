import Cryptography
import Encodings
import KeyAttestation
import SoftwareAuthenticator

typealias MadeDescription = PhoneDescription

extension MadeDescription {
    static let package = "com.example.shop"

    static func app(signers: [[UInt8]] = [SoftwarePhone.signer]) -> [UInt8] {
        app([package], signers: signers)
    }
}

/// A chain of a software phone with what tests change, and the policy that judges it.
@dynamicMemberLookup
struct MadeChain {
    static let now = UnixTime(seconds: 1_800_000_000)

    private static let authority = SoftwareAuthority(seed: [30], madeAt: now)
    private static let device = SoftwareDevice(
        authority: authority,
        package: MadeDescription.package,
        phone: SoftwarePhone()
    )
    private static let key = device.makeKey(seed: [1]).publicKey
    static let root = authority.root

    private var chain: PhoneChain
    var policy = AndroidPolicy.standard

    init(_ phone: SoftwarePhone = SoftwarePhone()) {
        chain = PhoneChain(
            of: Self.key,
            on: SoftwareDevice(
                authority: Self.authority,
                package: MadeDescription.package,
                phone: phone
            ),
            challenge: Array("challenge".utf8),
            at: Self.now
        )
        // What a test has to say for itself.
        chain.attesterExtensions = []
    }

    subscript<Part>(dynamicMember path: WritableKeyPath<PhoneChain, Part>) -> Part {
        get { chain[keyPath: path] }
        set { chain[keyPath: path] = newValue }
    }

    static func extended(_ oid: String, _ value: [UInt8]) -> CertificateBuilder.Extension {
        CertificateBuilder.Extension(oid: OID(oid), isCritical: false, value: value)
    }

    var certificates: [X509Certificate] { chain.certificates }

    func verified(
        _ certificates: [X509Certificate]? = nil
    ) throws(KeyAttestationRefusal) -> VerifiedKeyAttestation {
        let chain = (certificates ?? self.certificates).map(\.der)
        return try UnverifiedKeyAttestation(chain: chain).verified(
            challenge: Array("challenge".utf8),
            app: ExpectedAndroidApp(
                package: MadeDescription.package,
                signers: [SoftwarePhone.signer],
                policy: policy
            ),
            roots: [Self.root],
            statusList: .empty,
            at: Self.now
        )
    }

    /// Why the chain is refused with a change; `nil` when it is accepted.
    static func reason(
        _ phone: SoftwarePhone = SoftwarePhone(),
        _ change: (inout MadeChain) -> Void = { _ in }
    ) -> KeyAttestationRefusal.Reason? {
        var chain = MadeChain(phone)
        change(&chain)
        do throws(KeyAttestationRefusal) {
            _ = try chain.verified()
            return nil
        } catch {
            return error.reason
        }
    }
}
