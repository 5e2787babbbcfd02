import AppAttest
import Cryptography
import Encodings
import Expectations
import KeyAttestation
import KeyStore
import Rules
import Signatures
import SoftwareAuthenticator
import Testing
import Tokens
import Verification

/// Keys of Android phones that are enrolled, and what can be tried with their chains.
@Suite struct AndroidEnrolmentTests {
    private static let list = DatedStatusList(.empty, fetchedAt: Trial.start.seconds)

    private static func policy(
        _ edit: (inout AndroidDemands.Settings) -> Void = { _ in }
    ) -> AppPolicy {
        var policy = Trial.androidPolicy(Trial.package, [], edit)
        policy.testRoots = [Trial.authority.root]
        return policy
    }

    private static func fixture(
        _ edit: (inout AndroidDemands.Settings) -> Void = { _ in },
        admission: EnrolmentAdmission.Settings = EnrolmentFixture.unlimited,
        statusList: DatedStatusList? = list
    ) throws -> EnrolmentFixture {
        try EnrolmentFixture(
            [policy(edit), EnrolmentFixture.testPolicy()],
            admission: admission,
            statusList: statusList
        )
    }

    private static func enrol(
        _ key: SoftwareKey,
        _ fixture: EnrolmentFixture,
        context: [UInt8]? = nil
    ) async throws -> EnrolmentFixture.Answer {
        let challenge = try fixture.challenge()
        return await fixture.enrol(
            key.enrolment(challenge: challenge, context: context, at: fixture.now)
        )
    }

    @Test func `a phone's key is enrolled beside an iPhone's, and again without harm`()
        async throws
    {
        let fixture = try Self.fixture()
        let key = Trial.phone { $0.certificatesIssued = 16 }.makeKey()
        let document = key.enrolment(
            challenge: try fixture.challenge(),
            context: Array("account 7".utf8),
            at: fixture.now
        )
        let answer = await fixture.enrol(document)
        expectEqual(answer.status, 201)
        expectEqual(answer.body, #"{"key_id":"\#(key.keyID.base64)"}"# + "\n")
        let record = try #require(fixture.journal.record(key.keyID))
        #expect(record.platform == .android && record.appID == Trial.package)
        #expect(record.environment == .test && record.counters == CounterState())
        expectEqual(record.context, Array("account 7".utf8))
        #expect(record.receipt == nil && record.enrolledAt == fixture.now.seconds)
        #expect(record.chain?.serials.first == "1" && record.chain?.serials.count == 4)
        expectEqual(record.chain?.certificatesIssued, 16)
        await expectEqual(fixture.enrol(document).status, 200)
        let iPhone = Trial.device().makeKey()
        try await expectEqual(Self.enrol(iPhone, fixture).status, 201)
    }

    private static let phones: [(String, @Sendable (inout SoftwarePhone) -> Void)] = [
        ("boot-refused", { $0.isLocked = false }), ("boot-refused", { $0.bootState = .selfSigned }),
        ("hardware-refused", { $0.level = .software }),
        ("key-unsuitable", { $0.origin = .imported }),
        ("signer-mismatch", { $0.signers = [[UInt8](repeating: 8, count: 32)] }),
        ("provisioning-refused", { $0.provisioning = .factory }),
        ("patch-level-refused", { $0.osPatchLevel = 202_001 }),
    ]

    @Test(arguments: phones.indices)
    func `a phone that the policy does not admit costs no challenge`(_ index: Int) async throws {
        let (reason, edit) = Self.phones[index]
        let fixture = try Self.fixture { settings in
            settings.phone.provisioning = [.rkp]
            settings.patchDaysMax = 365
        }
        let challenge = try fixture.challenge()
        let key = Trial.phone(edit).makeKey()
        let answer = await fixture.enrol(key.enrolment(challenge: challenge, at: fixture.now))
        expectEqual(answer.reason, reason)
        expectEqual(fixture.journal.record(key.keyID), nil)
        let good = Trial.phone().makeKey().enrolment(challenge: challenge, at: fixture.now)
        await expectEqual(fixture.enrol(good).status, 201)
    }

    @Test func `systems with named boot keys may enrol`() async throws {
        let bootKey = [UInt8](repeating: 9, count: 32)
        let fixture = try Self.fixture { $0.phone.bootKeys = [bootKey] }
        let key = Trial.phone { phone in
            phone.bootState = .selfSigned
            phone.bootKey = bootKey
        }.makeKey()
        try await expectEqual(Self.enrol(key, fixture).status, 201)
    }

    @Test func `a version code below the least one is refused`() async throws {
        let key = Trial.phone().makeKey()
        for (least, status) in [(1, 201), (2, 403)] as [(Int64, Int)] {
            let fixture = try Self.fixture { $0.versionMin = least }
            try await expectEqual(Self.enrol(key, fixture).status, status)
        }
    }

    @Test func `a chain of another app is refused`() async throws {
        let fixture = try Self.fixture()
        let key = Trial.phone(package: "com.example.other").makeKey()
        try await expectEqual(Self.enrol(key, fixture).reason, "app-mismatch")
        let ofApple = try EnrolmentFixture()
        let own = Trial.phone().makeKey()
        try await expectEqual(Self.enrol(own, ofApple).reason, "app-mismatch")
    }

    // MARK: Attacks

    @Test func `a chain is good for its challenge, its context and its key alone`() async throws {
        let fixture = try Self.fixture()
        let key = Trial.phone().makeKey()
        let (one, other) = (try fixture.challenge(), try fixture.challenge())
        let document = key.enrolment(challenge: one, context: [1], at: fixture.now)
        let replayed = document.replacing(one, with: other)
        await expectEqual(fixture.enrol(replayed).reason, "nonce-mismatch")
        // The account of another.
        let context = document.replacing(#""context":"AQ==""#, with: #""context":"Ag==""#)
        #expect(context != document)
        await expectEqual(fixture.enrol(context).reason, "nonce-mismatch")
        let without = document.replacing(#","context":"AQ==""#, with: "")
        #expect(without != document)
        await expectEqual(fixture.enrol(without).reason, "nonce-mismatch")
        let stranger = Trial.phone().makeKey().keyID.base64
        let named = document.replacing(key.keyID.base64, with: stranger)
        await expectEqual(fixture.enrol(named).reason, "key-id-mismatch")
        await expectEqual(fixture.enrol(document).status, 201)
    }

    @Test func `a challenge of another purpose enrols nothing`() async throws {
        let fixture = try Self.fixture()
        let challenge = try fixture.challenge(.assertion)
        let key = Trial.phone().makeKey()
        let answer = await fixture.enrol(key.enrolment(challenge: challenge, at: fixture.now))
        expectEqual(answer.reason, "challenge-unknown")
    }

    @Test func `a key that an attested key vouches for is refused`() async throws {
        let fixture = try Self.fixture()
        let challenge = try fixture.challenge()
        let (own, forged) = (ECPrivateKey(generating: .p256), ECPrivateKey(generating: .p256))
        let point = try #require(P256PublicKey(x963: own.x963))
        let hash = SHA256.digest(of: Array(challenge.utf8)).array
        let chain = Trial.phone().chain(for: point, attestationChallenge: hash, at: fixture.now)
        let leaf = try X509Certificate(der: chain[0])
        let description = try #require(leaf.extensionBytes(OID("1.3.6.1.4.1.11129.2.1.17")))
        let second = CertificateBuilder(
            subject: .init(commonName: "Android Keystore Key"),
            serial: 1,
            validity: fixture.now...fixture.now.advanced(bySeconds: 86_400),
            isAuthority: false,
            extensions: [
                CertificateBuilder.Extension(
                    oid: OID("1.3.6.1.4.1.11129.2.1.17"),
                    isCritical: false,
                    value: description
                )
            ]
        ).signed(for: forged, by: own, issuer: leaf)
        let key = try #require(P256PublicKey(x963: forged.x963))
        func answer(_ chain: [[UInt8]], _ key: P256PublicKey) async -> EnrolmentFixture.Answer {
            let texts = chain.map { "\"\(Base64.text($0))\"" }.joined(separator: ",")
            let id = Base64.text(SHA256.digest(of: key.x963).array)
            return await fixture.enrol(
                """
                {"platform":"android","key_id":"\(id)","chain":[\(texts)],\
                "challenge":"\(challenge)"}
                """
            )
        }
        await expectEqual(answer([second.der] + chain, key).reason, "certificate-untrusted")
        // In the place of the leaf that it is signed by.
        await expectEqual(answer([second.der] + chain.dropFirst(), key).status, 403)
        await expectEqual(answer(chain, point).status, 201)
    }

    @Test(arguments: [
        #"{"platform":"android","key_id":"K","attestation":"AA==","challenge":"C"}"#,
        #"{"platform":"android","key_id":"K","chain":"AA==","challenge":"C"}"#,
        #"{"platform":"android","key_id":"K","chain":["AA=="],"attestation":"","challenge":"C"}"#,
        #"{"platform":"apple","key_id":"K","chain":["AA=="],"challenge":"C"}"#,
        #"{"platform":"Android","key_id":"K","chain":["AA=="],"challenge":"C"}"#,
        #"{"platform":"","key_id":"K","chain":["AA=="],"challenge":"C"}"#,
        #"{"platform":7,"key_id":"K","attestation":"AA==","challenge":"C"}"#,
        #"{"key_id":"K","chain":["AA=="],"challenge":"C"}"#,
        #"{"platform":"android","key_id":"K","chain":["AA==",1],"challenge":"C"}"#,
        #"{"platform":"android","key_id":"K","chain":["AA=="],"chain":[],"challenge":"C"}"#,
        #"{"platform":"android","platform":"apple","key_id":"K","chain":[],"challenge":"C"}"#,
    ])
    func `a document of two minds is no request`(document: String) async throws {
        let fixture = try Self.fixture()
        let text = document.replacing("\"K\"", with: "\"\(Trial.phone().makeKey().keyID.base64)\"")
            .replacing("\"C\"", with: "\"\(try fixture.challenge())\"")
        await expectEqual(fixture.enrol(text).reason, "request-malformed")
    }

    @Test(arguments: [
        "[]", #"["AA=="]"#, #"["AA==","AA=="]"#, #"["A","AA=="]"#, #"["",""]"#,
        "[" + Array(repeating: "\"AA==\"", count: 11).joined(separator: ",") + "]",
    ])
    func `a chain of no certificates is malformed`(chain: String) async throws {
        let fixture = try Self.fixture()
        let answer = await fixture.enrol(
            """
            {"platform": "android", "key_id": "\(Trial.phone().makeKey().keyID.base64)",
             "chain": \(chain), "challenge": "\(try fixture.challenge())"}
            """
        )
        expectEqual(answer.reason, "attestation-malformed")
    }

    // MARK: The status list

    @Test func `without a list that is young enough, on_error decides`() async throws {
        let old = DatedStatusList(.empty, fetchedAt: Trial.start.seconds - 86_401)
        for list in [nil, old] {
            let fixture = try Self.fixture(statusList: list)
            let answer = try await Self.enrol(Trial.phone().makeKey(), fixture)
            #expect(answer.status == 503 && answer.reason == "status-list-unavailable")
            #expect(answer.fields["Retry-After"] != nil)
            let forwarding = try Self.fixture({ $0.onError = .forward }, statusList: list)
            let other = try await Self.enrol(Trial.phone().makeKey(), forwarding)
            expectEqual(other.status, 201)
        }
        let patient = try Self.fixture({ $0.statusSecondsMax = 90_000 }, statusList: old)
        try await expectEqual(Self.enrol(Trial.phone().makeKey(), patient).status, 201)
    }

    @Test(arguments: [0, 100_000] as [Int64])
    func `a phone in the list is refused, also by an old one`(age: Int64) async throws {
        let json = #"{"entries":{"00C0FFEE":{"status":"REVOKED"}}}"#
        let list = try StatusList(json: Array(json.utf8))
        let fixture = try Self.fixture(
            { $0.onError = .forward },
            statusList: DatedStatusList(list, fetchedAt: Trial.start.seconds - age)
        )
        let listed = Trial.phone { $0.serial = 0xC0FFEE }.makeKey()
        try await expectEqual(Self.enrol(listed, fixture).reason, "certificate-revoked")
        try await expectEqual(Self.enrol(Trial.phone().makeKey(), fixture).status, 201)
    }

    // MARK: Leaked keys

    @Test func `one attester attests so many keys a day, and the refused ones lose nothing`()
        async throws
    {
        var admission = EnrolmentFixture.unlimited
        admission.perAttester = 2
        var fixture = try Self.fixture(admission: admission)
        let leaked = Trial.phone { $0.name = "leaked" }
        for _ in 0..<2 { try await expectEqual(Self.enrol(leaked.makeKey(), fixture).status, 201) }
        let third = leaked.makeKey()
        let challenge = try fixture.challenge()
        let document = third.enrolment(challenge: challenge, at: fixture.now)
        let answer = await fixture.enrol(document)
        #expect(answer.status == 429 && answer.reason == "attester-throttled")
        expectEqual(answer.fields["Retry-After"], "43201")
        expectEqual(fixture.journal.record(third.keyID), nil)
        // A refused chain takes nothing.
        let unlocked = Trial.phone { phone in
            phone.name = "honest"
            phone.isLocked = false
        }
        for _ in 0..<3 { _ = try await Self.enrol(unlocked.makeKey(), fixture) }
        let honest = Trial.phone { $0.name = "honest" }
        try await expectEqual(Self.enrol(honest.makeKey(), fixture).status, 201)
        // The challenge is still good when the next one may enrol.
        fixture.tick += 43_201_000_000_000
        await expectEqual(fixture.enrol(document).status, 201)
    }

    /// Otherwise one chain, sent again and again, uses up what all phones of a factory's batch
    /// have.
    @Test func `a key that is refused for its integrity token is not its attester's`() async throws
    {
        var admission = EnrolmentFixture.unlimited
        admission.perAttester = 2
        let proof = TokenProof(name: "play", index: 0, place: .field(Array("x-token".utf8)))
        var rule = IntegrityRule(proof)
        rule.action = .refuse
        var fixture = try Self.fixture({ $0.integrity = rule }, admission: admission)
        let batch = Trial.phone { $0.name = "batch" }
        let keys = (0..<3).map { _ in batch.makeKey() }
        let documents = try keys.map { key in
            key.enrolment(challenge: try fixture.challenge(), at: fixture.now)
        }
        for finding in [TokenFinding.missing, .invalid, .refused, .unavailable, .spent] {
            fixture.finding = finding
            let answer = await fixture.enrol(documents[0])
            #expect(answer.reason.hasPrefix("proof-"), "\(finding): \(answer)")
        }
        fixture.finding = .verdict(IntegrityVerdict())
        await expectEqual(fixture.enrol(documents[0]).status, 201)
        await expectEqual(fixture.enrol(documents[1]).status, 201)
        // No service is asked about a key that its attester may not have.
        await expectEqual(fixture.enrol(documents[2]).reason, "attester-throttled")
        fixture.tick += 43_201_000_000_000
        await expectEqual(fixture.enrol(documents[2]).status, 201)
    }

    @Test func `where the limit is off, nothing counts`() async throws {
        var admission = EnrolmentFixture.unlimited
        admission.perAttester = nil
        let fixture = try Self.fixture(admission: admission)
        for _ in 0..<20 {
            try await expectEqual(Self.enrol(Trial.phone().makeKey(), fixture).status, 201)
        }
    }
}
