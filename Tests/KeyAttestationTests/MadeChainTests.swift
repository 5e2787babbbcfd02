import Cryptography
import Encodings
import Expectations
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
        expectEqual(verified.provisioning, .rkp)
        expectEqual(verified.serials.map(\.description), ["1", "abc", "7", "6"])
        expectEqual(verified.attesterID.count, 32)
        expectEqual(verified.initialCounter, .zero)
        expectEqual(VerifiedKeyAttestation.platform, .android)
        expectEqual(verified.keyID, KeyID(of: verified.publicKey))
        expectEqual(verified.provisioningInfo, nil)
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
            expectEqual(reason, expected[tag])
        }
    }

    @Test func `curve and size may be absent, and may not be others`() {
        expectEqual(hardware(10, nil), nil)
        expectEqual(hardware(3, nil), nil)
        expectEqual(hardware(10, DEREncoder.integer(2)), .keyKind)
        expectEqual(hardware(3, DEREncoder.integer(384)), .keyKind)
        expectEqual(hardware(2, DEREncoder.integer(1)), .keyKind)
        let p384 = ECPrivateKey(generating: .p384)
        expectEqual(MadeChain.reason { $0.leafKey = (p384.x963, .p384) }, .keyKind)
    }

    @Test func `levels have to agree, and StrongBox to be said by a certificate`() {
        expectEqual(reason { $0.levels = (1, 2) }, .levelMismatch)
        expectEqual(reason { $0.levels = (0, 1) }, .levelMismatch)
        expectEqual(reason { $0.levels = (0, 0) }, .softwareLevel)
        expectEqual(reason { $0.levels = (2, 2) }, .levelMismatch)
        let strongBox = MadeChain.reason {
            $0.description.levels = (2, 2)
            $0.levelName = "StrongBox"
        }
        expectEqual(strongBox, nil)
        let ownWord = MadeChain.reason {
            $0.description.levels = (2, 2)
            $0.leafLevelName = "StrongBox"
        }
        expectEqual(ownWord, .levelMismatch)
        expectEqual(MadeChain.reason { $0.policy.securityLevels = [.strongBox] }, .securityLevel)
        let software = MadeChain.reason {
            $0.description.levels = (0, 0)
            $0.policy.securityLevels = [.software]
        }
        expectEqual(software, nil)
    }

    @Test func `the start of the system is judged by the policy`() {
        let key = [UInt8](repeating: 9, count: 32)
        let selfSigned = MadeDescription.rootOfTrust(key: key, state: 1)
        expectEqual(hardware(704, selfSigned), .bootState)
        let known = MadeChain.reason {
            $0.description.hardware[704] = selfSigned
            $0.policy.bootKeys = [key]
        }
        expectEqual(known, nil)
        let unverified = MadeChain.reason {
            $0.description.hardware[704] = MadeDescription.rootOfTrust(key: key, state: 2)
            $0.policy.bootKeys = [key]
        }
        expectEqual(unverified, .bootState)
        let unlocked = MadeDescription.rootOfTrust(isLocked: [0])
        expectEqual(hardware(704, unlocked), .bootloaderUnlocked)
        let allowed = MadeChain.reason {
            $0.description.hardware[704] = unlocked
            $0.policy.requiresLocked = false
        }
        expectEqual(allowed, nil)
    }

    @Test func `a true is any byte but zero, and one byte`() {
        expectEqual(hardware(704, MadeDescription.rootOfTrust(isLocked: [0x01])), nil)
        expectEqual(hardware(704, MadeDescription.rootOfTrust(isLocked: [0, 1])), .malformed)
        expectEqual(hardware(704, MadeDescription.rootOfTrust(isLocked: [])), .malformed)
        expectEqual(hardware(704, MadeDescription.rootOfTrust(state: 4)), .malformed)
        let hash = [DEREncoder.octetString([1])]
        expectEqual(hardware(704, MadeDescription.rootOfTrust(more: hash)), nil)
        expectEqual(hardware(704, MadeDescription.rootOfTrust(more: hash + hash)), .malformed)
    }

    @Test func `origin, purposes and digests are the hardware's`() {
        expectEqual(hardware(702, DEREncoder.integer(2)), .origin)
        expectEqual(hardware(702, DEREncoder.integer(9)), .malformed)
        let imported = MadeChain.reason {
            $0.description.hardware[702] = DEREncoder.integer(2)
            $0.policy.origins = [.generated, .imported]
        }
        expectEqual(imported, nil)
        expectEqual(hardware(1, DEREncoder.set([DEREncoder.integer(7)])), .purpose)
        expectEqual(hardware(5, DEREncoder.set([DEREncoder.integer(0)])), .digest)
    }

    @Test func `the app is one of those that share its user id`() {
        func app(_ content: [UInt8]) -> KeyAttestationRefusal.Reason? {
            reason { $0.software = [MadeDescription.tagged(709, DEREncoder.octetString(content))] }
        }
        expectEqual(app(MadeDescription.app(["android", MadeDescription.package])), nil)
        expectEqual(app(MadeDescription.app(["com.example"])), .app)
        expectEqual(app(MadeDescription.app(signers: [[1]])), .signer)
        expectEqual(app(MadeDescription.app(signers: [[1], SoftwarePhone.signer])), nil)
        expectEqual(app(MadeDescription.app(signers: [])), .signer)
        expectEqual(reason { $0.software = [] }, .appUnknown)
        expectEqual(app(MadeDescription.app([])), .appUnknown)
        expectEqual(app(MadeDescription.app(["UnknownPackage"])), .appUnknown)
        expectEqual(app(Array("UnknownApplication".utf8)), .appUnknown)
        expectEqual(app(Array("Unknown".utf8)), .malformed)
        let crowd = (0...AttestedApps.entriesMax).map { "com.example.a\($0)" }
        expectEqual(app(MadeDescription.app(crowd)), .malformed)
    }

    @Test func `what the hardware says of the app counts for nothing`() {
        let elsewhere = reason {
            $0.software = []
            $0.hardware[709] = DEREncoder.octetString(MadeDescription.app())
        }
        expectEqual(elsewhere, .appUnknown)
    }

    @Test func `tags that are not known are skipped, and none may come twice`() {
        let unknown = MadeDescription.tagged(799, [0x05, 0x00])
        expectEqual(reason { $0.more = [unknown] }, nil)
        expectEqual(reason { $0.more = [unknown, unknown] }, .malformed)
        // In any order.
        expectEqual(reason { $0.more = [MadeDescription.tagged(4, [0x05, 0x00])] }, nil)
        let origin = MadeDescription.tagged(702, DEREncoder.integer(0))
        expectEqual(reason { $0.more = [origin] }, .malformed)
        expectEqual(reason { $0.more = [DEREncoder.integer(1)] }, .malformed)
        let many = (800...928).map { MadeDescription.tagged($0, [0x05, 0x00]) }
        expectEqual(reason { $0.more = many }, .malformed)
        expectEqual(reason { $0.fields = [DEREncoder.integer(1)] }, .malformed)
        expectEqual(hardware(705, DEREncoder.integer(1) + DEREncoder.integer(1)), .malformed)
    }

    @Test func `a date beyond 64 bits is no reason to refuse`() {
        let never = DEREncoder.element(.integer, [0] + [UInt8](repeating: 0xFF, count: 8))
        expectEqual(hardware(402, never), nil)
        expectEqual(hardware(705, never), .malformed)
    }

    @Test func `a patch level is compared when it is a month`() {
        func level(_ value: UInt32?, least: Int64) -> KeyAttestationRefusal.Reason? {
            MadeChain.reason {
                $0.description.hardware[706] = value.map(DEREncoder.integer)
                $0.policy.osPatchLevelMin = least
            }
        }
        expectEqual(level(202_601, least: 202_601), nil)
        expectEqual(level(202_512, least: 202_601), .osPatchLevel)
        expectEqual(level(20_260_105, least: 202_601), .osPatchLevel)
        expectEqual(level(0, least: 202_601), .osPatchLevel)
        expectEqual(level(nil, least: 202_601), .osPatchLevel)
    }

    @Test func `the description is in the leaf, once, and in no other certificate`() {
        let second = MadeChain.extended("1.3.6.1.4.1.11129.2.1.17", MadeChain().description.der)
        expectEqual(MadeChain.reason { $0.leafExtensions = [second] }, .noAttestation)
        expectEqual(MadeChain.reason { $0.attesterExtensions = [second] }, .chainExtended)
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
        expectEqual(MadeChain.reason(phone), nil)
        let strict = MadeChain.reason(phone) { $0.policy.provisioning = [.factory, .rkp] }
        expectEqual(strict, .provisioning)
        expectEqual(MadeChain.reason { $0.policy.provisioning = [.factory] }, .provisioning)
    }

    @Test func `provisioning info is read where it can be, and no reason to refuse`() throws {
        var made = MadeChain()
        let map = CBORValue.map([.init(.unsigned(1), .unsigned(64))])
        made.attesterExtensions = [MadeChain.extended(Self.provisioningInfo, map.encoded)]
        try expectEqual(made.verified().provisioningInfo?.certificatesIssued, 64)
        made.attesterExtensions = [MadeChain.extended(Self.provisioningInfo, [0xFF])]
        try expectEqual(made.verified().provisioningInfo, nil)
        // The leaf's is the app's word.
        made.attesterExtensions = []
        made.leafExtensions = [MadeChain.extended(Self.provisioningInfo, map.encoded)]
        try expectEqual(made.verified().provisioningInfo, nil)
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
