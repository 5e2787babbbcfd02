import AppAttest
import Cryptography
import Encodings
import Expectations
import Foundation
import KeyAttestation
import RequestBinding
import SoftwareAuthenticator
import Testing

/// Android phones in software, as `KeyAttestation` judges them.
@Suite struct PhoneTests {
    private static let package = "com.example.shop"

    private func device(_ change: (inout SoftwarePhone) -> Void = { _ in }) -> SoftwareDevice {
        var phone = SoftwarePhone()
        change(&phone)
        return SoftwareDevice(authority: Bench.authority, package: Self.package, phone: phone)
    }

    private func verified(
        _ chain: [[UInt8]],
        challenge: [UInt8],
        package: String = package,
        policy: AndroidPolicy = .standard,
        statusList: StatusList = .empty,
        at time: UnixTime = Bench.now
    ) throws(KeyAttestationRefusal) -> VerifiedKeyAttestation {
        try UnverifiedKeyAttestation(chain: chain).verified(
            challenge: challenge,
            app: ExpectedAndroidApp(
                package: package,
                signers: [SoftwarePhone.signer],
                policy: policy
            ),
            roots: [Bench.authority.root],
            statusList: statusList,
            at: time
        )
    }

    @Test(arguments: Provisioning.allCases, [SecurityLevel.trustedEnvironment, .strongBox])
    func `a phone of each kind makes chains that verify`(
        _ provisioning: Provisioning,
        _ level: SecurityLevel
    ) throws {
        let device = device {
            $0.provisioning = provisioning
            $0.level = level
        }
        let key = device.makeKey()
        let chain = key.chain(challenge: "AQE", at: Bench.now)
        let hash = SHA256.digest(of: Array("AQE".utf8)).array
        let verified = try verified(chain, challenge: hash)
        expectEqual(verified.keyID, key.keyID)
        expectEqual(verified.provisioning, provisioning)
        expectEqual(verified.description.keyMintLevel, level)
        expectEqual(verified.description.hardwareEnforced.osPatchLevel, 202_701)
        expectEqual(verified.provisioningInfo?.certificatesIssued, provisioning == .rkp ? 8 : nil)
        #expect(verified.root === Bench.authority.root)
    }

    @Test func `a context is attested with the challenge`() throws {
        let chain = device().makeKey().chain(challenge: "AQE", context: [1], at: Bench.now)
        let lines = EnrolmentLines.clientData(
            challenge: "AQE",
            contextDigest: SHA256.digest(of: [1]).array
        )
        _ = try verified(chain, challenge: SHA256.digest(of: lines).array)
    }

    struct Case: Sendable {
        let change: @Sendable (inout SoftwarePhone) -> Void
        let reason: KeyAttestationRefusal.Reason?

        init(
            _ reason: KeyAttestationRefusal.Reason?,
            _ change: @escaping @Sendable (inout SoftwarePhone) -> Void
        ) {
            self.change = change
            self.reason = reason
        }
    }

    private static let cases = [
        Case(.signer) { $0.signers = [] },
        Case(.signer) { $0.signers = [[1]] },
        Case(.softwareLevel) { $0.level = .software },
        Case(.bootState) { $0.bootState = .selfSigned },
        Case(.bootloaderUnlocked) { $0.isLocked = false },
        Case(.origin) { $0.origin = .imported },
        Case(.osPatchLevel) { $0.osPatchLevel = 202_512 },
        Case(.provisioning) { $0.provisioning = .unknown },
        Case(.revoked) { $0.serial = 0xAB01 },
        Case(nil) { $0.certificatesIssued = nil },
        Case(nil) { $0.name = "another" },
    ]

    @Test(arguments: cases)
    func `each bad phone is refused for what it says`(_ row: Case) throws {
        var policy = AndroidPolicy.standard
        policy.osPatchLevelMin = 202_601
        policy.provisioning = [.factory, .rkp]
        let list = try StatusList(json: Array(#"{"entries":{"ab01":{"status":"REVOKED"}}}"#.utf8))
        let device = device(row.change)
        let chain = device.chain(
            for: device.makeKey().publicKey,
            attestationChallenge: [1],
            at: Bench.now
        )
        var found: KeyAttestationRefusal.Reason?
        do throws(KeyAttestationRefusal) {
            _ = try verified(chain, challenge: [1], policy: policy, statusList: list)
        } catch {
            found = error.reason
        }
        expectEqual(found, row.reason)
    }

    @Test func `phones of one name attest with one key`() throws {
        func attester(_ name: String) throws -> [UInt8] {
            let device = device { $0.name = name }
            let chain = device.makeKey().chain(challenge: "AQE", at: Bench.now)
            let hash = SHA256.digest(of: Array("AQE".utf8)).array
            return try verified(chain, challenge: hash).attesterID
        }
        try expectEqual(attester("batch"), attester("batch"))
        #expect(try attester("batch") != attester("phone"))
    }

    @Test func `a phone with RKP keeps a key longer than its certificates`() throws {
        let hash = SHA256.digest(of: Array("AQE".utf8)).array
        let later = Bench.now.advanced(bySeconds: 15 * 86_400)
        for provisioning in [Provisioning.factory, .rkp] {
            let device = device { $0.provisioning = provisioning }
            let chain = device.makeKey().chain(challenge: "AQE", at: Bench.now)
            let isValid = (try? verified(chain, challenge: hash, at: later)) != nil
            expectEqual(isValid, provisioning == .factory)
        }
    }

    @Test(arguments: [nil] + AssertionDamage.allCases)
    func `requests are signed with a counter, and each damage is refused for what it is`(
        _ damage: AssertionDamage?
    ) throws {
        var key = device().makeKey()
        let request = SoftwareKey.Request(method: "GET", target: "/v1/orders", challenge: "AQE")
        for _ in 0..<8 {
            _ = key.proof(of: request, signing: .lines(.all, headers: []))
            let stored = key.counter
            let proof = key.proof(of: request, signing: .lines(.all, headers: []), damage: damage)
            expectEqual(refusal(of: proof.assertion, request, key, stored), damage?.phoneRefusal)
        }
        #expect(key.proof(of: request, signing: .challenge).assertion.hasPrefix("v1."))
    }

    private func refusal(
        of text: String,
        _ request: SoftwareKey.Request,
        _ key: SoftwareKey,
        _ stored: SignCounter
    ) -> AssertionRefusal.Reason? {
        guard let signature = UnverifiedKeySignature(Array(text.utf8)) else { return .malformed }
        let lines = RequestLines.clientData(
            .all,
            of: RequestLines.Request(
                method: request.method,
                target: request.target,
                digest: SHA256.digest(of: request.content).array,
                headers: []
            ),
            challenge: request.challenge
        )
        let hash = ContiguousArray(SHA256.digest(of: lines).array)
        let isValid = signature.isValid(
            clientDataHash: hash.span,
            package: Self.package,
            key: key.publicKey
        )
        guard isValid else { return .signatureMismatch }
        return signature.counter > stored ? nil : .counterReplayed
    }

    @Test func `the document of an enrolment has the chain, and an import line the platform`()
        throws
    {
        let key = device().makeKey()
        let text = key.enrolment(challenge: "AQE", context: [1, 2], at: Bench.now)
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(object?["platform"] as? String == "android")
        #expect(object?["key_id"] as? String == key.keyID.base64)
        expectEqual((object?["chain"] as? [String])?.count, 4)
        #expect(object?["challenge"] as? String == "AQE")
        #expect(object?["context"] as? String == "AQI=")
        #expect(key.importLine(as: .test).contains(#""platform":"android""#))

        let apple = Bench(.beforeTwentySeven).key
        let other = apple.enrolment(challenge: "AQE", at: Bench.now)
        let members = try JSONSerialization.jsonObject(with: Data(other.utf8)) as? [String: Any]
        expectEqual(
            Set(members.map { Array($0.keys) } ?? []),
            ["key_id", "attestation", "challenge"]
        )
    }
}
