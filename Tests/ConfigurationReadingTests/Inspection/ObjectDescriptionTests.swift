import AppAttest
import Encodings
import Expectations
import TestSupport
import Testing
import Tokens

@testable import ConfigurationReading

@Suite struct ObjectDescriptionTests {
    @Test(arguments: SharedVectors.attestations)
    func `an attestation is shown without being judged`(_ vector: AttestationVector) throws {
        let report = ObjectDescription.attestation(try bytes(vector.attestationB64))
        expectEqual(report.status, .accepted)
        expectEqual(report.json["verdict"], nil)
        expectEqual(report.json["key_id"], .string(vector.keyId))
        expectEqual(report.json["environment"], .string(vector.environment))
        expectEqual(report.json["device"]?["os_version"], .text(vector.osVersion))
        expectEqual(report.json["public_key"], .string(vector.publicKeyX963B64))
        expectEqual(report.json["receipt"]?["type"], .string("ATTEST"))
        if case .string(let nonce)? = report.json["nonce"] {
            expectEqual(nonce.count, 64)
        } else {
            Issue.record("no nonce")
        }
    }

    @Test(arguments: SharedVectors.assertions)
    func `an assertion is shown without being judged`(_ vector: AssertionVector) throws {
        let report = ObjectDescription.assertion(try bytes(vector.assertionB64))
        expectEqual(report.status, .accepted)
        expectEqual(report.json["counter"], .number(Int64(vector.counter)))
        let hash = AppIDHash(appID: vector.appId)
        expectEqual(report.json["app_id_hash"], .string(Hex.text(hash.bytes)))
        guard case .string(let data)? = report.json["authenticator_data"] else {
            Issue.record("no authenticator data")
            return
        }
        #expect(try #require(Base64.decode(data)).starts(with: hash.bytes))
    }

    @Test(arguments: SharedVectors.receipts)
    func `a receipt is shown without being judged`(_ vector: ReceiptVector) throws {
        let report = ObjectDescription.receipt(try bytes(vector.receiptB64))
        expectEqual(report.status, .accepted)
        expectEqual(report.json["creation_time"], .string(vector.creationTime))
        expectEqual(report.json["not_before"], .text(vector.notBefore))
        expectEqual(report.json["expiration_time"], .string(vector.expiration))
        expectEqual(report.json["public_key"], .string(vector.publicKeyX963B64))
    }

    @Test func `what is no such object is said to be malformed`() {
        let reports = [
            ("attestation-malformed", ObjectDescription.attestation([0xA0])),
            ("assertion-malformed", ObjectDescription.assertion([])),
            ("receipt-malformed", ObjectDescription.receipt([0x30, 0x80])),
            ("challenge-malformed", ObjectDescription.challenge([0x41])),
        ]
        for (reason, report) in reports {
            expectEqual(report.status, .refused)
            expectEqual(report.json["reason"], .string(reason))
        }
    }

    @Test func `a challenge of a gateway is taken apart`() throws {
        let issuer = ChallengeIssuer(
            lifetimes: ChallengeIssuer.Lifetimes(enrolment: 3_600, assertion: 300),
            capacity: 16,
            epoch: 0xAB
        )
        _ = issuer.issue(.assertion, now: 1_800_000_000)
        let text = issuer.issue(.assertion, now: 1_800_000_000)
        let report = ObjectDescription.challenge(text + [0x0A])
        expectEqual(report.status, .accepted)
        expectEqual(
            report.json.line,
            """
            {"version": 1, "purpose": "assertion", "epoch": "00000000000000ab", \
            "serial": 1, "expiry": 1800000300, "expires_at": "2027-01-15T08:05:00Z"}
            """
        )
    }
}
