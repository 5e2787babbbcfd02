import AppAttest
import Cryptography
import Encodings
import Expectations
import KeyStore
import RequestBinding
import Rules
import SoftwareAuthenticator
import Testing
import Tokens
import Verification

@Suite struct EnrolmentTests {
    // MARK: Keys

    @Test func `base64url is read in key id, attestation and context`() async throws {
        let fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let challenge = try fixture.challenge()
        let context = [UInt8](0..<64) + [0xFF, 0xFE]
        let standard = fixture.document(key, challenge: challenge, context: context)
        #expect(standard.contains("=") && standard.contains("+"))
        let answer = await fixture.enrol(
            standard.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        )
        expectEqual(answer.status, 201)
        expectEqual(answer.body, #"{"key_id":"\#(key.keyID.base64)"}"# + "\n")
        expectEqual(fixture.journal.record(key.keyID)?.context, context)
    }

    @Test func `a key is enrolled, and enrolled again without harm to its counter`() async throws {
        let fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let first = await fixture.enrol(fixture.document(key, challenge: try fixture.challenge()))
        expectEqual(first.status, 201)
        expectEqual(first.body, #"{"key_id":"\#(key.keyID.base64)"}"# + "\n")
        let used = fixture.keys.consume(
            CounterUse(
                of: key.keyID,
                counter: SignCounter(rawValue: 41),
                rule: .strict,
                challenge: nil
            ),
            issuer: fixture.issuer,
            now: 1
        )
        guard case .pending = used else {
            Issue.record("\(used)")
            return
        }
        let again = await fixture.enrol(fixture.document(key, challenge: try fixture.challenge()))
        expectEqual(again.status, 200)
        expectEqual(again.body, first.body)
        guard case .known(let stored) = fixture.keys.find(key.keyID) else {
            Issue.record("not known")
            return
        }
        expectEqual(stored.counter, SignCounter(rawValue: 41))
        expectEqual(stored.environment, .test)
        let record = try #require(fixture.journal.record(key.keyID))
        #expect(record.receipt != nil)
        expectEqual(record.appID, Trial.appID)
        expectEqual(record.enrolledAt, fixture.now.seconds)
    }

    @Test(arguments: AttestationDamage.allCases)
    func `a damaged attestation is refused for its damage, stored nowhere, and costs no challenge`(
        damage: AttestationDamage
    ) async throws {
        let fixture = try EnrolmentFixture([EnrolmentFixture.testPolicy { $0.platform = .ios }])
        let device = Trial.device(
            shape: .iOS27(category: .appStore, bundleVersion: "100")
        )
        let key = device.makeKey()
        let challenge = try fixture.challenge()
        let answer = await fixture.enrol(
            fixture.document(key, challenge: challenge, damage: damage)
        )
        // A test app takes both of Apple's environments, and only macOS has the list checked.
        switch damage {
        case .otherEnvironment: expectEqual(answer.status, 201)
        case .accessControl: #expect([201, 403].contains(answer.status))
        default:
            expectEqual(answer.reason, damage.refusal.rawValue)
            expectEqual(fixture.journal.record(key.keyID), nil)
            let good = await fixture.enrol(fixture.document(key, challenge: challenge))
            expectEqual(good.status, 201)
        }
    }

    @Test func `an app that hashes nothing hands over the challenge itself`() async throws {
        let fixture = try EnrolmentFixture([
            EnrolmentFixture.testPolicy { $0.clientDataHash = .raw }
        ])
        let key = Trial.device().makeKey()
        let challenge = try fixture.challenge()
        let hashed = await fixture.enrol(fixture.document(key, challenge: challenge))
        expectEqual(hashed.reason, "nonce-mismatch")
        let raw = await fixture.enrol(fixture.document(key, challenge: challenge, hashing: .raw))
        expectEqual(raw.status, 201)
    }

    @Test func `an attestation for another challenge is refused`() async throws {
        let fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let other = fixture.document(key, challenge: try fixture.challenge())
        let challenge = try fixture.challenge()
        let mine = fixture.document(key, challenge: challenge)
        // The object of one, the challenge of the other.
        let members = other.split(separator: #","challenge""#)
        let ends = mine.split(separator: #","challenge""#)
        let mixed = String(members[0]) + #","challenge""# + String(ends[1])
        await expectEqual(fixture.enrol(mixed).reason, "nonce-mismatch")
    }

    @Test func `another key id than the attested one is refused`() async throws {
        let fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let other = Trial.device().makeKey()
        let document = fixture.document(key, challenge: try fixture.challenge())
            .replacing(key.keyID.base64, with: other.keyID.base64)
        await expectEqual(fixture.enrol(document).reason, "key-id-mismatch")
    }

    @Test func `an app that is not configured is refused`() async throws {
        let fixture = try EnrolmentFixture()
        let key = Trial.device(appID: Trial.otherAppID).makeKey()
        let answer = await fixture.enrol(fixture.document(key, challenge: try fixture.challenge()))
        expectEqual(answer.status, 403)
        expectEqual(answer.reason, "app-mismatch")
    }

    @Test func `an authority is trusted for the app that names it and no other`() async throws {
        let fixture = try EnrolmentFixture([
            EnrolmentFixture.testPolicy(), Trial.policy(Trial.otherAppID),
        ])
        let key = Trial.device(appID: Trial.otherAppID).makeKey()
        let answer = await fixture.enrol(fixture.document(key, challenge: try fixture.challenge()))
        expectEqual(answer.reason, "certificate-untrusted")
    }

    @Test func `the build must be one that the app admits`() async throws {
        let fixture = try EnrolmentFixture([
            EnrolmentFixture.testPolicy { $0.builds = .appStore100 }
        ])
        func answer(_ shape: DeviceShape) async throws -> EnrolmentFixture.Answer {
            let key = Trial.device(shape: shape).makeKey()
            return await fixture.enrol(fixture.document(key, challenge: try fixture.challenge()))
        }
        let store = try await answer(.iOS27(category: .appStore, bundleVersion: "100"))
        expectEqual(store.status, 201)
        let flight = try await answer(.iOS27(category: .testFlight, bundleVersion: "100"))
        expectEqual(flight.reason, "category-refused")
        let old = try await answer(.iOS27(category: .appStore, bundleVersion: "99"))
        expectEqual(old.reason, "version-refused")
        let silent = try await answer(.beforeTwentySeven)
        expectEqual(silent.reason, "category-refused")
    }

    @Test(arguments: AppPolicy.Platform.allCases)
    func `iPhones and Macs enrol for one app, and a Mac out of full security does not`(
        platform: AppPolicy.Platform
    ) async throws {
        let fixture = try EnrolmentFixture([EnrolmentFixture.testPolicy { $0.platform = platform }])
        let mac = DeviceShape.macOS27(category: .appStore, bundleVersion: nil)
        let shapes: [DeviceShape] = [
            .iOS14, .beforeTwentySeven, .iOS26, mac,
            .iOS27(category: .appStore, bundleVersion: "100"),
        ]
        for shape in shapes {
            let key = Trial.device(shape: shape).makeKey()
            let answer = await fixture.enrol(
                fixture.document(key, challenge: try fixture.challenge())
            )
            expectEqual(answer.status, 201, "\(shape): \(answer.reason)")
        }
        let key = Trial.device(shape: mac).makeKey()
        let document = fixture.document(
            key,
            challenge: try fixture.challenge(),
            damage: .accessControl
        )
        await expectEqual(fixture.enrol(document).reason, "access-control-mismatch")
    }

    @Test func `a revoked key does not come back by enrolling again`() async throws {
        let fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        await expectEqual(
            fixture.enrol(fixture.document(key, challenge: try fixture.challenge())).status,
            201
        )
        #expect(fixture.journal.revoke(key.keyID, at: 5))
        let again = await fixture.enrol(fixture.document(key, challenge: try fixture.challenge()))
        expectEqual(again.status, 403)
        expectEqual(again.reason, "key-revoked")
    }

    @Test func `a store that fails is not the client's fault`() async throws {
        let fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let document = fixture.document(key, challenge: try fixture.challenge())
        let call = EnrolmentCall(Array(document.utf8), now: fixture.now, tick: fixture.tick)
        guard case .store(_, let serial) = fixture.enrolment.examine(call) else {
            throw Trial.Absent()
        }
        let answer = await fixture.answer(fixture.enrolment.stored(.failed, spending: serial))
        expectEqual(answer.status, 503)
        expectEqual(answer.reason, "store-unavailable")
        #expect(answer.fields["Retry-After"] != nil)
        // Apple attests a key once: the same attestation is good again.
        await expectEqual(fixture.enrol(document).status, 201)
    }

    // MARK: Context

    @Test func `a context is bound by the attestation and kept with the key`() async throws {
        let fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let challenge = try fixture.challenge()
        let document = fixture.document(key, challenge: challenge, context: Array("anna".utf8))
        let forged = document.replacing("YW5uYQ==", with: "YmVydA==")
        await expectEqual(fixture.enrol(forged).reason, "nonce-mismatch")
        let bare = document.replacing(#","context":"YW5uYQ==""#, with: "")
        await expectEqual(fixture.enrol(bare).reason, "nonce-mismatch")
        await expectEqual(fixture.enrol(document).status, 201)
        expectEqual(fixture.journal.record(key.keyID)?.context, Array("anna".utf8))
        // Nor can one be added to an attestation that has none.
        let other = Trial.device().makeKey()
        let plain = fixture.document(other, challenge: try fixture.challenge())
        let added = plain.dropLast() + #","context":"YW5uYQ=="}"#
        await expectEqual(fixture.enrol(String(added)).reason, "nonce-mismatch")
    }

    @Test(arguments: ["\"\"", "7", "null", "\"%\"", "\"\(String(repeating: "A", count: 344))\""])
    func `a context that is no base64 of 1 to 256 bytes is malformed`(value: String) async throws {
        let fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let document = fixture.document(key, challenge: try fixture.challenge())
        let answer = await fixture.enrol(document.dropLast() + #","context":\#(value)}"#)
        expectEqual(answer.reason, "request-malformed")
    }

    @Test func `the longest context of the wire is the longest of the store`() async throws {
        expectEqual(EnrolmentLines.contextBytesMax, KeyRecord.contextBytesMax)
        let fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let context = [UInt8](repeating: 255, count: EnrolmentLines.contextBytesMax)
        let document = fixture.document(key, challenge: try fixture.challenge(), context: context)
        await expectEqual(fixture.enrol(document).status, 201)
    }

    // MARK: Receipts

    @Test(arguments: ReceiptDamage.allCases)
    func `a receipt that does not verify is refused where one is required, and else not kept`(
        damage: ReceiptDamage
    ) async throws {
        // An hour is young enough: a retry of `attestKey` brings the receipt of the first try.
        let isTaken = damage == .old
        for receipt in AppPolicy.Receipt.allCases {
            let fixture = try EnrolmentFixture([
                EnrolmentFixture.testPolicy { $0.receipt = receipt }
            ])
            let key = Trial.device().makeKey()
            let document = fixture.document(
                key,
                challenge: try fixture.challenge(),
                receiptDamage: damage
            )
            let answer = await fixture.enrol(document)
            if receipt == .required, !isTaken {
                expectEqual(answer.status, 403)
                expectEqual(answer.reason, "receipt-refused")
                expectEqual(fixture.journal.record(key.keyID), nil)
            } else {
                expectEqual(answer.status, 201)
                let record = try #require(fixture.journal.record(key.keyID))
                expectEqual((record.receipt != nil), isTaken)
            }
        }
    }

    @Test func `a test authority's receipts are good for its own keys`() async throws {
        let fixture = try EnrolmentFixture([EnrolmentFixture.testPolicy { $0.receipt = .required }])
        let key = Trial.device().makeKey()
        let answer = await fixture.enrol(fixture.document(key, challenge: try fixture.challenge()))
        expectEqual(answer.status, 201)
        #expect(fixture.journal.record(key.keyID)?.receipt != nil)
    }

    // MARK: The challenge

    @Test func `the challenge must be ours, for enrolment, in time and unspent`() async throws {
        var fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let foreign = await fixture.enrol(fixture.document(key, challenge: "AQEA"))
        expectEqual(foreign.reason, "challenge-unknown")
        let other = await fixture.enrol(
            fixture.document(key, challenge: try fixture.challenge(.assertion))
        )
        expectEqual(other.reason, "challenge-unknown")
        let challenge = try fixture.challenge()
        await expectEqual(fixture.enrol(fixture.document(key, challenge: challenge)).status, 201)
        let second = Trial.device().makeKey()
        let spent = await fixture.enrol(fixture.document(second, challenge: challenge))
        expectEqual(spent.reason, "challenge-spent")
        let late = try fixture.challenge()
        fixture.now = fixture.now.advanced(bySeconds: 3_600)
        let expired = await fixture.enrol(fixture.document(second, challenge: late))
        expectEqual(expired.reason, "challenge-expired")
        // A challenge of the answer's would be one that nobody has admitted.
        expectEqual(expired.fields["App-Attest-Challenge"], nil)
        #expect(expired.body.contains(#""next":"enrol""#))
        #expect(!expired.body.contains("\"challenge\""))
    }

    @Test func `a lost answer costs no second key: the same call is answered 200`() async throws {
        var fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let document = fixture.document(key, challenge: try fixture.challenge())
        await expectEqual(fixture.enrol(document).status, 201)
        await expectEqual(fixture.enrol(document).status, 200)
        fixture.now = fixture.now.advanced(bySeconds: 86_400)
        await expectEqual(fixture.enrol(document).status, 200)
        #expect(fixture.journal.revoke(key.keyID, at: 5))
        await expectEqual(fixture.enrol(document).reason, "key-revoked")
    }

    @Test func `a challenge of before a restart enrols, each once in each start`() async throws {
        let before = try EnrolmentFixture()
        let keys = (0..<3).map { _ in Trial.device().makeKey() }
        let documents = try keys.map { before.document($0, challenge: try before.challenge()) }
        let signed = try before.challenge(.assertion)
        await expectEqual(before.enrol(documents[0]).status, 201)
        // The next start has the same serial numbers.
        let after = try EnrolmentFixture(journal: before.journal, epoch: 2)
        let own = try after.challenge()
        await expectEqual(after.enrol(documents[0]).status, 200)
        await expectEqual(after.enrol(documents[1]).status, 201)
        await expectEqual(after.enrol(documents[1]).status, 200)
        let fresh = after.document(Trial.device().makeKey(), challenge: own)
        await expectEqual(after.enrol(fresh).status, 201)
        await expectEqual(after.enrol(documents[2]).status, 201)
        // Spent in this start, so that it is good for no other key.
        let challenge = try #require(documents[2].split(separator: "\"").dropLast().last)
        let stranger = Trial.device().makeKey()
        let other = after.document(stranger, challenge: String(challenge))
        await expectEqual(after.enrol(other).reason, "challenge-spent")
        // Assertion challenges die with the process.
        let bytes = Array(signed.utf8)
        let now = after.now.seconds
        expectEqual(after.issuer.examine(bytes.span, purpose: .assertion, now: now), .unknown)
    }

    // MARK: Documents

    static let malformed: [String] = [
        "", "{", "{}", "[]", "null", "\"key_id\"", #"{"key_id":1,"attestation":"","challenge":""}"#,
        #"{"key_id":"","attestation":"AAAA","challenge":"AQEA"}"#,
        #"{"key_id":"AAAA","attestation":"AAAA","challenge":"AQEA"}"#,
        #"{"key_id":null,"attestation":"AAAA","challenge":"AQEA"}"#,
        EnrolmentFixture.document(String(repeating: "A", count: 43) + "=", "AAAA", "AQEA") + "x",
        EnrolmentFixture.document(String(repeating: "A", count: 43) + "=", "AAAA", "AQEA\u{1}"),
        #"{"key_id":"AA","key_id":"AA","attestation":"AAAA","challenge":"AQEA"}"#,
    ]

    @Test(arguments: malformed)
    func `a document that can't be read is refused as malformed`(text: String) async throws {
        let answer = await (try EnrolmentFixture()).enrol(text)
        expectEqual(answer.status, 400)
        expectEqual(answer.reason, "request-malformed")
    }

    @Test func `an attestation that can't be read is refused as malformed`() async throws {
        let fixture = try EnrolmentFixture()
        let keyID = Trial.device().makeKey().keyID.base64
        for text in ["", "%%%", "AAAA", String(repeating: "A", count: 12_000)] {
            let document = EnrolmentFixture.document(keyID, text, try fixture.challenge())
            let answer = await fixture.enrol(document)
            expectEqual(answer.status, 400)
            expectEqual(answer.reason, "attestation-malformed")
        }
    }

    @Test func `members that nobody asked for do no harm`() async throws {
        let fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let document = fixture.document(key, challenge: try fixture.challenge())
        let more = #"{"more":[{"key_id":"x"}],"#
        await expectEqual(fixture.enrol(more + document.dropFirst()).status, 201)
    }

    // MARK: Rates

    @Test func `who holds a challenge is let in, however many bad attestations come`() async throws
    {
        let fixture = try EnrolmentFixture {
            $0.examinationsPerSecond = 1
            $0.examinationsBurst = 2
        }
        let bad = EnrolmentFixture.document(
            Trial.device().makeKey().keyID.base64,
            "AAAA",
            try fixture.challenge()
        )
        // The first try of a challenge is free; then there is a rate.
        for _ in 0..<3 { await expectEqual(fixture.enrol(bad).status, 400) }
        let third = await fixture.enrol(bad)
        expectEqual(third.reason, "enrolment-throttled")
        #expect(third.fields["Retry-After"] != nil)
        // Nor does it matter that a neighbour has used up the address's verifications.
        let key = Trial.device().makeKey()
        let document = fixture.document(key, challenge: try fixture.challenge())
        await expectEqual(fixture.enrol(document, addressWait: 9_000_000_000).status, 201)
    }

    @Test func `a second try counts against the address`() async throws {
        let fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let challenge = try fixture.challenge()
        let bad = fixture.document(key, challenge: challenge, damage: .otherNonce)
        await expectEqual(fixture.enrol(bad, addressWait: 5_000_000_000).reason, "nonce-mismatch")
        let refused = await fixture.enrol(bad, addressWait: 5_000_000_000)
        expectEqual(refused.status, 429)
        expectEqual(refused.reason, "address-throttled")
        expectEqual(refused.fields["Retry-After"], "6")
        #expect(refused.body.contains(#""next":"retry-later""#))
        await expectEqual(fixture.enrol(fixture.document(key, challenge: challenge)).status, 201)
    }

    @Test func `strangers without a challenge of ours take nothing from the rate`() async throws {
        let fixture = try EnrolmentFixture {
            $0.examinationsPerSecond = 1
            $0.examinationsBurst = 1
        }
        let keyID = Trial.device().makeKey().keyID.base64
        for _ in 0..<50 {
            let answer = await fixture.enrol(EnrolmentFixture.document(keyID, "AAAA", "AQEA"))
            expectEqual(answer.reason, "challenge-unknown")
        }
        let key = Trial.device().makeKey()
        await expectEqual(
            fixture.enrol(fixture.document(key, challenge: try fixture.challenge())).status,
            201
        )
    }
}
