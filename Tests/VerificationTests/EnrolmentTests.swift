import AppAttest
import ByteCoding
import Challenges
import Cryptography
import KeyStore
import Rules
import SoftwareAuthenticator
import Testing
import Verification

@Suite struct EnrolmentTests {
    // MARK: Keys

    @Test func `a key is enrolled, and enrolled again without harm to its counter`() async throws {
        let desk = try Desk()
        let key = Trial.device().makeKey()
        let first = await desk.enrol(desk.document(key, challenge: try desk.challenge()))
        #expect(first.status == 201)
        #expect(first.body == #"{"key_id":"\#(key.keyID.base64)"}"# + "\n")
        let used = desk.keys.consume(
            key.keyID,
            counter: SignCounter(rawValue: 41),
            rule: .strict,
            challenge: nil,
            issuer: desk.issuer,
            now: 1
        )
        guard case .pending = used else {
            Issue.record("\(used)")
            return
        }
        let again = await desk.enrol(desk.document(key, challenge: try desk.challenge()))
        #expect(again.status == 200)
        #expect(again.body == first.body)
        guard case .known(let stored) = desk.keys.find(key.keyID) else {
            Issue.record("not known")
            return
        }
        #expect(stored.counter == SignCounter(rawValue: 41))
        #expect(stored.environment == .test)
        let record = try #require(desk.journal.record(key.keyID))
        #expect(record.receipt != nil)
        #expect(record.appID == Trial.appID)
        #expect(record.enrolledAt == desk.now.seconds)
    }

    @Test(arguments: AttestationDamage.allCases)
    func `a damaged attestation is refused for its damage, stored nowhere, and costs no challenge`(
        damage: AttestationDamage
    ) async throws {
        let desk = try Desk([Desk.testPolicy { $0.platform = .ios }])
        let device = Trial.device(
            shape: .iOS27(category: .appStore, bundleVersion: "100")
        )
        let key = device.makeKey()
        let challenge = try desk.challenge()
        let answer = await desk.enrol(desk.document(key, challenge: challenge, damage: damage))
        // A test app takes both of Apple's environments, and only macOS has the list checked.
        switch damage {
        case .otherEnvironment: #expect(answer.status == 201)
        case .accessControl: #expect([201, 403].contains(answer.status))
        default:
            #expect(answer.reason == damage.refusal.rawValue)
            #expect(desk.journal.record(key.keyID) == nil)
            let good = await desk.enrol(desk.document(key, challenge: challenge))
            #expect(good.status == 201)
        }
    }

    @Test func `an app that hashes nothing hands over the challenge itself`() async throws {
        let desk = try Desk([Desk.testPolicy { $0.clientDataHash = .raw }])
        let key = Trial.device().makeKey()
        let challenge = try desk.challenge()
        let hashed = await desk.enrol(desk.document(key, challenge: challenge))
        #expect(hashed.reason == "nonce-mismatch")
        let raw = await desk.enrol(desk.document(key, challenge: challenge, hashing: .raw))
        #expect(raw.status == 201)
    }

    @Test func `an attestation for another challenge is refused`() async throws {
        let desk = try Desk()
        let key = Trial.device().makeKey()
        let other = desk.document(key, challenge: try desk.challenge())
        let challenge = try desk.challenge()
        let mine = desk.document(key, challenge: challenge)
        // The object of one, the challenge of the other.
        let members = other.split(separator: #","challenge""#)
        let ends = mine.split(separator: #","challenge""#)
        let mixed = String(members[0]) + #","challenge""# + String(ends[1])
        #expect(await desk.enrol(mixed).reason == "nonce-mismatch")
    }

    @Test func `another key id than the attested one is refused`() async throws {
        let desk = try Desk()
        let key = Trial.device().makeKey()
        let other = Trial.device().makeKey()
        let document = desk.document(key, challenge: try desk.challenge())
            .replacing(key.keyID.base64, with: other.keyID.base64)
        #expect(await desk.enrol(document).reason == "key-id-mismatch")
    }

    @Test func `an app that is not configured is refused`() async throws {
        let desk = try Desk()
        let key = Trial.device(appID: Trial.otherAppID).makeKey()
        let answer = await desk.enrol(desk.document(key, challenge: try desk.challenge()))
        #expect(answer.status == 403)
        #expect(answer.reason == "app-mismatch")
    }

    @Test func `an authority is trusted for the app that names it and no other`() async throws {
        let desk = try Desk([Desk.testPolicy(), Trial.policy(Trial.otherAppID)])
        let key = Trial.device(appID: Trial.otherAppID).makeKey()
        let answer = await desk.enrol(desk.document(key, challenge: try desk.challenge()))
        #expect(answer.reason == "certificate-untrusted")
    }

    @Test func `the build must be one that the app admits`() async throws {
        let desk = try Desk([Desk.testPolicy { $0.builds = .appStore100 }])
        func answer(_ shape: DeviceShape) async throws -> Desk.Answer {
            let key = Trial.device(shape: shape).makeKey()
            return await desk.enrol(desk.document(key, challenge: try desk.challenge()))
        }
        let store = try await answer(.iOS27(category: .appStore, bundleVersion: "100"))
        #expect(store.status == 201)
        let flight = try await answer(.iOS27(category: .testFlight, bundleVersion: "100"))
        #expect(flight.reason == "category-refused")
        let old = try await answer(.iOS27(category: .appStore, bundleVersion: "99"))
        #expect(old.reason == "version-refused")
        let silent = try await answer(.beforeTwentySeven)
        #expect(silent.reason == "category-refused")
    }

    @Test func `a revoked key does not come back by enrolling again`() async throws {
        let desk = try Desk()
        let key = Trial.device().makeKey()
        #expect(await desk.enrol(desk.document(key, challenge: try desk.challenge())).status == 201)
        #expect(desk.journal.revoke(key.keyID, at: 5))
        let again = await desk.enrol(desk.document(key, challenge: try desk.challenge()))
        #expect(again.status == 403)
        #expect(again.reason == "key-revoked")
    }

    @Test func `a store that fails is not the client's fault`() async throws {
        let desk = try Desk()
        let answer = await desk.answer(desk.enrolment.stored(.failed))
        #expect(answer.status == 503)
        #expect(answer.reason == "store-unavailable")
        #expect(answer.fields["Retry-After"] != nil)
    }

    // MARK: Receipts

    @Test(arguments: ReceiptDamage.allCases)
    func `a receipt that does not verify is refused where one is required, and else not kept`(
        damage: ReceiptDamage
    ) async throws {
        // An hour is young enough: a retry of `attestKey` brings the receipt of the first try.
        let isTaken = damage == .old
        for receipt in AppPolicy.Receipt.allCases {
            let desk = try Desk([Desk.testPolicy { $0.receipt = receipt }])
            let key = Trial.device().makeKey()
            let document = desk.document(
                key,
                challenge: try desk.challenge(),
                receiptDamage: damage
            )
            let answer = await desk.enrol(document)
            if receipt == .required, !isTaken {
                #expect(answer.status == 403)
                #expect(answer.reason == "receipt-refused")
                #expect(desk.journal.record(key.keyID) == nil)
            } else {
                #expect(answer.status == 201)
                let record = try #require(desk.journal.record(key.keyID))
                #expect((record.receipt != nil) == isTaken)
            }
        }
    }

    @Test func `a test authority's receipts are good for its own keys`() async throws {
        let desk = try Desk([Desk.testPolicy { $0.receipt = .required }])
        let key = Trial.device().makeKey()
        let answer = await desk.enrol(desk.document(key, challenge: try desk.challenge()))
        #expect(answer.status == 201)
        #expect(desk.journal.record(key.keyID)?.receipt != nil)
    }

    // MARK: The challenge

    @Test func `the challenge must be ours, for enrolment, in time and unspent`() async throws {
        var desk = try Desk()
        let key = Trial.device().makeKey()
        let foreign = await desk.enrol(desk.document(key, challenge: "AQEA"))
        #expect(foreign.reason == "challenge-unknown")
        let other = await desk.enrol(
            desk.document(key, challenge: try desk.challenge(.assertion))
        )
        #expect(other.reason == "challenge-unknown")
        let challenge = try desk.challenge()
        #expect(await desk.enrol(desk.document(key, challenge: challenge)).status == 201)
        let spent = await desk.enrol(desk.document(key, challenge: challenge))
        #expect(spent.reason == "challenge-spent")
        let late = try desk.challenge()
        desk.now = desk.now.advanced(bySeconds: 3_600)
        let expired = await desk.enrol(desk.document(key, challenge: late))
        #expect(expired.reason == "challenge-expired")
        // The answer brings the next one, for the same purpose.
        let fresh = Array(try #require(expired.fields["App-Attest-Challenge"]).utf8)
        let examined = desk.issuer.examine(
            fresh.span,
            purpose: .enrolment,
            now: desk.now.seconds
        )
        guard case .valid = examined else {
            Issue.record("\(examined)")
            return
        }
    }

    // MARK: Documents

    static let malformed: [String] = [
        "", "{", "{}", "[]", "null", "\"key_id\"", #"{"key_id":1,"attestation":"","challenge":""}"#,
        #"{"key_id":"","attestation":"AAAA","challenge":"AQEA"}"#,
        #"{"key_id":"AAAA","attestation":"AAAA","challenge":"AQEA"}"#,
        #"{"key_id":null,"attestation":"AAAA","challenge":"AQEA"}"#,
        Desk.document(String(repeating: "A", count: 43) + "=", "AAAA", "AQEA") + "x",
        Desk.document(String(repeating: "A", count: 43) + "=", "AAAA", "AQEA\u{1}"),
        #"{"key_id":"AA","key_id":"AA","attestation":"AAAA","challenge":"AQEA"}"#,
    ]

    @Test(arguments: malformed)
    func `a document that can't be read is refused as malformed`(text: String) async throws {
        let answer = await (try Desk()).enrol(text)
        #expect(answer.status == 400)
        #expect(answer.reason == "request-malformed")
    }

    @Test func `an attestation that can't be read is refused as malformed`() async throws {
        let desk = try Desk()
        let keyID = Trial.device().makeKey().keyID.base64
        for text in ["", "%%%", "AAAA", String(repeating: "A", count: 12_000)] {
            let document = Desk.document(keyID, text, try desk.challenge())
            let answer = await desk.enrol(document)
            #expect(answer.status == 400)
            #expect(answer.reason == "attestation-malformed")
        }
    }

    @Test func `members that nobody asked for do no harm`() async throws {
        let desk = try Desk()
        let key = Trial.device().makeKey()
        let document = desk.document(key, challenge: try desk.challenge())
        let more = #"{"more":[{"key_id":"x"}],"#
        #expect(await desk.enrol(more + document.dropFirst()).status == 201)
    }

    // MARK: Rates

    @Test func `keys beyond the app's rate are told when to come again`() async throws {
        var desk = try Desk {
            $0.keysPerSecond = 1
            $0.keysBurst = 2
        }
        let keys = (0..<3).map { _ in Trial.device().makeKey() }
        for key in keys.prefix(2) {
            let answer = await desk.enrol(desk.document(key, challenge: try desk.challenge()))
            #expect(answer.status == 201)
        }
        let challenge = try desk.challenge()
        let document = desk.document(keys[2], challenge: challenge)
        let later = await desk.enrol(document)
        #expect(later.status == 429)
        #expect(later.reason == "enrolment-throttled")
        #expect(later.fields["Retry-After"] == "2")
        desk.tick += 1_000_000_000
        // The same attestation, since no challenge was spent.
        #expect(await desk.enrol(document).status == 201)
    }

    @Test func `bad attestations have a rate of their own and cost no app its keys`() async throws {
        let desk = try Desk {
            $0.examinationsPerSecond = 1
            $0.examinationsBurst = 2
            $0.keysPerSecond = 1
            $0.keysBurst = 1
        }
        let keyID = Trial.device().makeKey().keyID.base64
        let bad = await desk.enrol(Desk.document(keyID, "AAAA", try desk.challenge()))
        #expect(bad.status == 400)
        let key = Trial.device().makeKey()
        #expect(await desk.enrol(desk.document(key, challenge: try desk.challenge())).status == 201)
        let third = await desk.enrol(Desk.document(keyID, "AAAA", try desk.challenge()))
        #expect(third.status == 429)
        #expect(third.fields["Retry-After"] != nil)
    }

    @Test func `strangers without a challenge of ours take nothing from the rate`() async throws {
        let desk = try Desk {
            $0.examinationsPerSecond = 1
            $0.examinationsBurst = 1
        }
        let keyID = Trial.device().makeKey().keyID.base64
        for _ in 0..<50 {
            let answer = await desk.enrol(Desk.document(keyID, "AAAA", "AQEA"))
            #expect(answer.reason == "challenge-unknown")
        }
        let key = Trial.device().makeKey()
        #expect(await desk.enrol(desk.document(key, challenge: try desk.challenge())).status == 201)
    }
}
