import Cryptography
import Encodings
import KeyAttestation
import SoftwareAuthenticator
import Testing

/// What genuine chains don't show, or no chain that was published.
@Suite struct MadeChainTests {
    private static let provisioningInfo = "1.3.6.1.4.1.11129.2.1.30"

    private func reason(
        _ change: (inout MadeDescription) -> Void
    ) -> KeyAttestationRefusal.Reason? {
        MadeChain.reason { change(&$0.description) }
    }

    private func hardware(_ tag: UInt32, _ value: [UInt8]?) -> KeyAttestationRefusal.Reason? {
        reason { $0.hardware[tag] = value }
    }

    @Test func `a made chain is accepted, with what is to be stored`() throws {
        var phone = SoftwarePhone()
        phone.serial = 0xABC
        let verified = try MadeChain(phone).verified()
        #expect(verified.provisioning == .rkp)
        #expect(verified.serials.map(\.description) == ["1", "abc", "7", "6"])
        #expect(verified.attesterID.count == 32)
        #expect(verified.initialCounter == .zero)
        #expect(VerifiedKeyAttestation.platform == .android)
        #expect(verified.keyID == KeyID(of: verified.publicKey))
        #expect(verified.provisioningInfo == nil)
        #expect(verified.root === MadeChain.root)
    }

    @Test func `what the system says in the hardware's place counts for nothing`() {
        for tag in [1, 2, 5, 702, 704] as [UInt32] {
            let reason = reason { made in
                guard let value = made.hardware.removeValue(forKey: tag) else { return }
                made.software.append(MadeDescription.tagged(tag, value))
            }
            let expected: [UInt32: KeyAttestationRefusal.Reason] = [
                1: .purpose, 2: .keyKind, 5: .digest, 702: .origin, 704: .noRootOfTrust,
            ]
            #expect(reason == expected[tag])
        }
    }

    @Test func `curve and size may be absent, and may not be others`() {
        #expect(hardware(10, nil) == nil)
        #expect(hardware(3, nil) == nil)
        #expect(hardware(10, DEREncoder.integer(2)) == .keyKind)
        #expect(hardware(3, DEREncoder.integer(384)) == .keyKind)
        #expect(hardware(2, DEREncoder.integer(1)) == .keyKind)
        let p384 = ECPrivateKey(generating: .p384)
        #expect(MadeChain.reason { $0.leafKey = (p384.x963, .p384) } == .keyKind)
    }

    @Test func `levels have to agree, and StrongBox to be said by a certificate`() {
        #expect(reason { $0.levels = (1, 2) } == .levelMismatch)
        #expect(reason { $0.levels = (0, 1) } == .levelMismatch)
        #expect(reason { $0.levels = (0, 0) } == .softwareLevel)
        #expect(reason { $0.levels = (2, 2) } == .levelMismatch)
        let strongBox = MadeChain.reason {
            $0.description.levels = (2, 2)
            $0.levelName = "StrongBox"
        }
        #expect(strongBox == nil)
        let ownWord = MadeChain.reason {
            $0.description.levels = (2, 2)
            $0.leafLevelName = "StrongBox"
        }
        #expect(ownWord == .levelMismatch)
        #expect(MadeChain.reason { $0.policy.securityLevels = [.strongBox] } == .securityLevel)
        let software = MadeChain.reason {
            $0.description.levels = (0, 0)
            $0.policy.securityLevels = [.software]
        }
        #expect(software == nil)
    }

    @Test func `the start of the system is judged by the policy`() {
        let key = [UInt8](repeating: 9, count: 32)
        let selfSigned = MadeDescription.rootOfTrust(key: key, state: 1)
        #expect(hardware(704, selfSigned) == .bootState)
        let known = MadeChain.reason {
            $0.description.hardware[704] = selfSigned
            $0.policy.bootKeys = [key]
        }
        #expect(known == nil)
        let unverified = MadeChain.reason {
            $0.description.hardware[704] = MadeDescription.rootOfTrust(key: key, state: 2)
            $0.policy.bootKeys = [key]
        }
        #expect(unverified == .bootState)
        let unlocked = MadeDescription.rootOfTrust(isLocked: [0])
        #expect(hardware(704, unlocked) == .bootloaderUnlocked)
        let allowed = MadeChain.reason {
            $0.description.hardware[704] = unlocked
            $0.policy.requiresLocked = false
        }
        #expect(allowed == nil)
    }

    @Test func `a true is any byte but zero, and one byte`() {
        #expect(hardware(704, MadeDescription.rootOfTrust(isLocked: [0x01])) == nil)
        #expect(hardware(704, MadeDescription.rootOfTrust(isLocked: [0, 1])) == .malformed)
        #expect(hardware(704, MadeDescription.rootOfTrust(isLocked: [])) == .malformed)
        #expect(hardware(704, MadeDescription.rootOfTrust(state: 4)) == .malformed)
        let hash = [DEREncoder.octetString([1])]
        #expect(hardware(704, MadeDescription.rootOfTrust(more: hash)) == nil)
        #expect(hardware(704, MadeDescription.rootOfTrust(more: hash + hash)) == .malformed)
    }

    @Test func `origin, purposes and digests are the hardware's`() {
        #expect(hardware(702, DEREncoder.integer(2)) == .origin)
        #expect(hardware(702, DEREncoder.integer(9)) == .malformed)
        let imported = MadeChain.reason {
            $0.description.hardware[702] = DEREncoder.integer(2)
            $0.policy.origins = [.generated, .imported]
        }
        #expect(imported == nil)
        #expect(hardware(1, DEREncoder.set([DEREncoder.integer(7)])) == .purpose)
        #expect(hardware(5, DEREncoder.set([DEREncoder.integer(0)])) == .digest)
    }

    @Test func `the app is one of those that share its user id`() {
        func app(_ content: [UInt8]) -> KeyAttestationRefusal.Reason? {
            reason { $0.software = [MadeDescription.tagged(709, DEREncoder.octetString(content))] }
        }
        #expect(app(MadeDescription.app(["android", MadeDescription.package])) == nil)
        #expect(app(MadeDescription.app(["com.example"])) == .app)
        #expect(app(MadeDescription.app(signers: [[1]])) == .signer)
        #expect(app(MadeDescription.app(signers: [[1], SoftwarePhone.signer])) == nil)
        #expect(app(MadeDescription.app(signers: [])) == .signer)
        #expect(reason { $0.software = [] } == .appUnknown)
        #expect(app(MadeDescription.app([])) == .appUnknown)
        #expect(app(MadeDescription.app(["UnknownPackage"])) == .appUnknown)
        #expect(app(Array("UnknownApplication".utf8)) == .appUnknown)
        #expect(app(Array("Unknown".utf8)) == .malformed)
        let crowd = (0...AttestedApps.entriesMax).map { "com.example.a\($0)" }
        #expect(app(MadeDescription.app(crowd)) == .malformed)
    }

    @Test func `what the hardware says of the app counts for nothing`() {
        let elsewhere = reason {
            $0.software = []
            $0.hardware[709] = DEREncoder.octetString(MadeDescription.app())
        }
        #expect(elsewhere == .appUnknown)
    }

    @Test func `tags that are not known are skipped, and none may come twice`() {
        let unknown = MadeDescription.tagged(799, [0x05, 0x00])
        #expect(reason { $0.more = [unknown] } == nil)
        #expect(reason { $0.more = [unknown, unknown] } == .malformed)
        // In any order.
        #expect(reason { $0.more = [MadeDescription.tagged(4, [0x05, 0x00])] } == nil)
        let origin = MadeDescription.tagged(702, DEREncoder.integer(0))
        #expect(reason { $0.more = [origin] } == .malformed)
        #expect(reason { $0.more = [DEREncoder.integer(1)] } == .malformed)
        let many = (800...928).map { MadeDescription.tagged($0, [0x05, 0x00]) }
        #expect(reason { $0.more = many } == .malformed)
        #expect(reason { $0.fields = [DEREncoder.integer(1)] } == .malformed)
        #expect(hardware(705, DEREncoder.integer(1) + DEREncoder.integer(1)) == .malformed)
    }

    @Test func `a date beyond 64 bits is no reason to refuse`() {
        let never = DEREncoder.element(.integer, [0] + [UInt8](repeating: 0xFF, count: 8))
        #expect(hardware(402, never) == nil)
        #expect(hardware(705, never) == .malformed)
    }

    @Test func `a patch level is compared when it is a month`() {
        func level(_ value: UInt32?, least: Int64) -> KeyAttestationRefusal.Reason? {
            MadeChain.reason {
                $0.description.hardware[706] = value.map(DEREncoder.integer)
                $0.policy.osPatchLevelMin = least
            }
        }
        #expect(level(202_601, least: 202_601) == nil)
        #expect(level(202_512, least: 202_601) == .osPatchLevel)
        #expect(level(20_260_105, least: 202_601) == .osPatchLevel)
        #expect(level(0, least: 202_601) == .osPatchLevel)
        #expect(level(nil, least: 202_601) == .osPatchLevel)
    }

    @Test func `the description is in the leaf, once, and in no other certificate`() {
        let second = MadeChain.extended("1.3.6.1.4.1.11129.2.1.17", MadeChain().description.der)
        #expect(MadeChain.reason { $0.leafExtensions = [second] } == .noAttestation)
        #expect(MadeChain.reason { $0.attesterExtensions = [second] } == .chainExtended)
    }

    @Test func `a chain has the length of its kind`() throws {
        let made = MadeChain().certificates
        for certificates in [made + [MadeChain.root], made] {
            _ = try MadeChain().verified(certificates)
        }
        #expect(throws: KeyAttestationRefusal.self) {
            try MadeChain().verified(made + [MadeChain.root, MadeChain.root])
        }
        #expect(throws: KeyAttestationRefusal.self) { try MadeChain().verified([made[0]]) }
        #expect(throws: KeyAttestationRefusal.self) {
            try MadeChain().verified((0..<11).map { _ in made[0] })
        }
        #expect(throws: KeyAttestationRefusal.self) {
            try MadeChain().verified([MadeChain.root, MadeChain.root])
        }
    }

    @Test func `a chain of no known kind is a matter of the policy`() {
        var phone = SoftwarePhone()
        phone.provisioning = .unknown
        #expect(MadeChain.reason(phone) == nil)
        let strict = MadeChain.reason(phone) { $0.policy.provisioning = [.factory, .rkp] }
        #expect(strict == .provisioning)
        #expect(MadeChain.reason { $0.policy.provisioning = [.factory] } == .provisioning)
    }

    @Test func `provisioning info is read where it can be, and no reason to refuse`() throws {
        var made = MadeChain()
        let map = CBORValue.map([.init(.unsigned(1), .unsigned(64))])
        made.attesterExtensions = [MadeChain.extended(Self.provisioningInfo, map.encoded)]
        #expect(try made.verified().provisioningInfo?.certificatesIssued == 64)
        made.attesterExtensions = [MadeChain.extended(Self.provisioningInfo, [0xFF])]
        #expect(try made.verified().provisioningInfo == nil)
        // The leaf's is the app's word.
        made.attesterExtensions = []
        made.leafExtensions = [MadeChain.extended(Self.provisioningInfo, map.encoded)]
        #expect(try made.verified().provisioningInfo == nil)
    }
}

@Suite struct KeyAttestationAdviceTests {
    @Test(arguments: KeyAttestationRefusal.Reason.allCases)
    func `every reason says what is wrong and what to look at`(
        _ reason: KeyAttestationRefusal.Reason
    ) {
        for text in [reason.summary, reason.nextStep] {
            #expect(text.hasSuffix(".") && text.count > 15, "\(reason)")
        }
    }
}
