import AppAttest
import Cryptography
import Encodings
import Expectations
import SoftwareAuthenticator
import Testing

@Suite struct AttestationTests {
    @Test(arguments: Bench.shapes)
    func `an attestation verifies under its own root`(_ shape: DeviceShape) throws {
        for environment in AttestationEnvironment.allCases {
            let bench = Bench(shape, environment: environment)
            let object = bench.key.attestation(clientDataHash: Bench.hash, at: Bench.now)
            let verified = try bench.verifiedAttestation(object)
            expectEqual(verified.publicKey, bench.key.publicKey)
            expectEqual(verified.keyID, bench.key.keyID)
            expectEqual(verified.environment, environment)
            expectEqual(verified.details.commonName, Hex.text(bench.key.keyID.bytes))
            expectEqual(verified.details.appID, Bench.appID)
        }
    }

    @Test(arguments: Bench.shapes)
    func `an attestation is refused under Apple's root`(_ shape: DeviceShape) {
        let bench = Bench(shape)
        let object = bench.key.attestation(clientDataHash: Bench.hash, at: Bench.now)
        expectEqual(
            bench.attestationRefusal(object, roots: [AppleRoots.appAttestation]),
            .certificateUntrusted
        )
    }

    @Test(arguments: Bench.shapes, AttestationDamage.allCases)
    func `each damage is refused for what it is`(
        _ shape: DeviceShape,
        _ damage: AttestationDamage
    ) {
        let bench = Bench(shape)
        let object = bench.key.attestation(
            clientDataHash: Bench.hash,
            at: Bench.now,
            damage: damage
        )
        expectEqual(bench.attestationRefusal(object), damage.refusal)
    }

    @Test func `damage of each kind that a verifier knows can be done`() {
        let policies: Set<AttestationRefusal.Reason> = [.categoryRefused, .versionRefused]
        expectEqual(
            Set(AttestationDamage.allCases.map(\.refusal)),
            Set(AttestationRefusal.Reason.allCases).subtracting(policies)
        )
    }

    @Test func `the leaf is good for two days and no second longer`() {
        let bench = Bench(.beforeTwentySeven)
        let object = bench.key.attestation(clientDataHash: Bench.hash, at: Bench.now)
        let last = Bench.now.advanced(bySeconds: 2 * 86_400)
        expectEqual(bench.attestationRefusal(object, at: last), nil)
        expectEqual(
            bench.attestationRefusal(object, at: last.advanced(bySeconds: 1)),
            .certificateExpired
        )
    }

    @Test func `the client data hash may have any length`() {
        let bench = Bench(.beforeTwentySeven)
        let challenge = Array("example_server_challenge".utf8)
        let object = bench.key.attestation(clientDataHash: challenge, at: Bench.now)
        expectEqual(bench.attestationRefusal(object, hash: challenge), nil)
        expectEqual(bench.attestationRefusal(object), .nonceMismatch)
    }

    @Test func `shapes differ in flags, extensions and access control as genuine objects do`()
        throws
    {
        let old = try object(.beforeTwentySeven)
        expectEqual(old.flags, 0x40)
        expectEqual(old.extensions.validationCategory, nil)
        expectEqual(old.details.accessControl, nil)
        expectEqual(old.details.platform, nil)

        let phone = try object(.iOS27(category: .development, bundleVersion: "1314"))
        expectEqual(phone.flags, 0xC0)
        expectEqual(phone.extensions.validationCategory, .development)
        expectEqual(phone.extensions.bundleVersion, "1314")
        expectEqual(phone.details.platform, "iphoneos")
        // From the leaf of Apple's sample of 2026.
        let list =
            "MEMMAjExMD0wCgwDb2tkoQMBAf8wCQwCb2GhAwEB/zALDARvc2duoQMBAf8wCwwEb2RlbKEDAQH/"
            + "MAoMA29ja6EDAQH/"
        expectEqual(phone.details.accessControl.map { Base64.text($0) }, list)

        let mac = try object(.macOS27(category: .developerID, bundleVersion: nil))
        expectEqual(mac.flags, 0x40)
        expectEqual(mac.extensions.codeDirectoryHash?.count, 32)
        expectEqual(mac.extensions.codeDirectoryHashType, [2])
        expectEqual(mac.details.platform, "macosx")
    }

    @Test func `the nonce extension has the bytes of genuine ones`() throws {
        let attestation = try object(.beforeTwentySeven)
        let value = try #require(
            attestation.leaf.extensionBytes(OID("1.2.840.113635.100.8.2"))
        )
        expectEqual(value.prefix(6), [0x30, 0x24, 0xA1, 0x22, 0x04, 0x20])
        expectEqual(value.count, 38)
    }

    @Test func `an authority of the same seed vouches for what another process made`() {
        let later = SoftwareAuthority(seed: [7], madeAt: Bench.now.advanced(bySeconds: 3_600))
        let bench = Bench(.beforeTwentySeven)
        let object = bench.key.attestation(clientDataHash: Bench.hash, at: Bench.now)
        #expect(later.root.der != Bench.authority.root.der)
        expectEqual(bench.attestationRefusal(object, roots: [later.root]), nil)
        let other = SoftwareAuthority(seed: [8], madeAt: Bench.now)
        expectEqual(bench.attestationRefusal(object, roots: [other.root]), .certificateUntrusted)
    }

    @Test func `the root's PEM is the root`() throws {
        let read = try X509Certificate.certificates(pem: Bench.authority.rootPEM)
        expectEqual(read.map(\.der), [Bench.authority.root.der])
    }

    private func object(_ shape: DeviceShape) throws -> UnverifiedAttestation {
        let bench = Bench(shape)
        return try UnverifiedAttestation(
            bytes: bench.key.attestation(clientDataHash: Bench.hash, at: Bench.now)
        )
    }
}
