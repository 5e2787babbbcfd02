import AppAttest
import Cryptography
import Encodings
import Expectations
import SoftwareAuthenticator
import TestSupport
import Testing

@testable import ConfigurationReading

extension ReceiptTrial.Options: TrialOptions {
    init(_ vector: ReceiptVector) {
        self.init()
        appIDs = [vector.appId]
        publicKey = vector.publicKeyX963B64
        at = vector.creationTime
        root = vector.root
    }

    func report(on bytes: [UInt8]) throws -> TrialReport {
        try ReceiptTrial(self, now: now).report(on: bytes)
    }
}

@Suite struct ReceiptTrialTests {
    @Test(arguments: SharedVectors.receipts)
    func `a genuine receipt is accepted with its facts`(_ vector: ReceiptVector) throws {
        let report = try ReceiptTrial.Options(vector).report(on: bytes(vector.receiptB64))
        expectEqual(report.status, .accepted)
        expectEqual(report.json["type"], .string(vector.receiptType))
        expectEqual(report.json["app_id"], .string(vector.appId))
        expectEqual(
            report.json["risk_metric"],
            vector.riskMetric.flatMap(Int64.init).map(JSONValue.number)
        )
        expectEqual(report.json["expired"], .bool(false))
        expectEqual(report.json["public_key_compared"], .bool(true))
        expectEqual(report.json["public_key"], .string(vector.publicKeyX963B64))
    }

    @Test(arguments: SharedVectors.receipts)
    func `the key may be left out, and is then only shown`(_ vector: ReceiptVector) throws {
        var options = ReceiptTrial.Options(vector)
        options.publicKey = nil
        let report = try options.report(on: bytes(vector.receiptB64))
        expectEqual(report.json["public_key"], .string(vector.publicKeyX963B64))
        expectEqual(report.json["public_key_compared"], .bool(false))
    }

    @Test(arguments: SharedVectors.receipts)
    func `the chain is judged when the receipt was made, the expiration when it is looked at`(
        _ vector: ReceiptVector
    ) throws {
        let options = ReceiptTrial.Options(vector)
        let object = try bytes(vector.receiptB64)
        let end = try #require(UnixTime(iso8601: vector.expiration))
        try expectEqual(options.reason(on: object) { $0.at = vector.expiration }, nil)
        try expectEqual(
            options.reason(on: object) { $0.at = end.advanced(bySeconds: 1).iso8601 },
            .string("receipt-expired")
        )
        // Years after the signer's certificate has run out.
        let report = try {
            var timeless = options
            timeless.at = nil
            return try timeless.report(on: object)
        }()
        expectEqual(report.status, .accepted)
        expectEqual(report.json["expired"], .null)
    }

    @Test(arguments: SharedVectors.receipts)
    func `age counts where it is asked for`(_ vector: ReceiptVector) throws {
        var options = ReceiptTrial.Options(vector)
        let created = try #require(UnixTime(iso8601: vector.creationTime))
        options.at = created.advanced(bySeconds: 301).iso8601
        try expectEqual(options.reason(on: bytes(vector.receiptB64)), nil)
        for (age, reason) in [
            ("5m", "receipt-too-old"), ("300s", "receipt-too-old"), ("6m", nil), ("1h", nil),
            ("1d", nil),
        ] {
            let found = try options.reason(on: bytes(vector.receiptB64)) { $0.maxAge = age }
            expectEqual(found, JSONValue.text(reason).ifString)
        }
    }

    @Test(arguments: SharedVectors.receipts)
    func `a genuine receipt is refused with anything else expected`(
        _ vector: ReceiptVector
    ) throws {
        let options = ReceiptTrial.Options(vector)
        let object = try bytes(vector.receiptB64)
        let other = P256PrivateKey().publicKey
        try expectEqual(
            options.reason(on: object) { $0.publicKey = Base64.text(other.x963) },
            .string("receipt-key-mismatch")
        )
        try expectEqual(
            options.reason(on: object) { $0.appIDs = ["ABCDE12345.com.example.shop"] },
            .string("app-mismatch")
        )
        let stranger = SoftwareAuthority(seed: [1], madeAt: now)
        try expectEqual(
            options.reason(on: object) { $0.root = Array(stranger.rootPEM.utf8) },
            .string("certificate-untrusted")
        )
        try expectEqual(options.reason(on: object + [0]), .string("receipt-malformed"))
    }

    @Test(arguments: SharedVectors.attestations)
    func `the receipt inside an attestation is judged like any other`(
        _ vector: AttestationVector
    ) throws {
        let description = ObjectDescription.attestation(try bytes(vector.attestationB64))
        let inside = description.json["receipt_base64"]
        guard case .string(let text)? = inside, let object = Base64.decode(text) else {
            Issue.record("no receipt")
            return
        }
        var options = ReceiptTrial.Options()
        options.appIDs = [vector.appId]
        options.publicKey = vector.publicKeyX963B64
        options.at = vector.verifyAt
        options.root = vector.root
        options.maxAge = "5m"
        let isGood = vector.checked.receipt.chainToAppleRootCaG3
        try expectEqual(options.reason(on: object), isGood ? nil : .string("certificate-untrusted"))
    }

    @Test(arguments: ReceiptDamage.allCases)
    func `damage is refused for what it is`(_ damage: ReceiptDamage) throws {
        let authority = SoftwareAuthority(seed: [1], madeAt: now)
        let key = SoftwareDevice(
            authority: authority,
            appID: "ABCDE12345.com.example.shop",
            environment: .development,
            shape: .beforeTwentySeven
        ).makeKey()
        var options = ReceiptTrial.Options()
        options.appIDs = [key.device.appID]
        options.publicKey = Base64.text(key.publicKey.x963)
        options.at = "now"
        options.maxAge = "5m"
        options.root = Array(authority.rootPEM.utf8)
        let good = key.receipt(.refreshed(riskMetric: 3), clientDataHash: [1], at: now)
        try expectEqual(options.reason(on: good), nil)
        let object = key.receipt(.attest, clientDataHash: [1], at: now, damage: damage)
        try expectEqual(options.reason(on: object), .string(damage.refusal.rawValue))
    }

    @Test func `a receipt that is said to be renewed is judged as one`() throws {
        let authority = SoftwareAuthority(seed: [1], madeAt: now)
        let key = SoftwareDevice(
            authority: authority,
            appID: "ABCDE12345.com.example.shop",
            environment: .development,
            shape: .beforeTwentySeven
        ).makeKey()
        var options = ReceiptTrial.Options()
        options.appIDs = [key.device.appID]
        options.root = Array(authority.rootPEM.utf8)
        let attest = key.receipt(.attest, clientDataHash: [1], at: now)
        let good = key.receipt(.refreshed(riskMetric: 3), clientDataHash: [1], at: now)
        try expectEqual(options.reason(on: attest), nil)
        options.isRenewed = true
        options.environment = "development"
        options.newerThan = now.advanced(bySeconds: -60).iso8601
        try expectEqual(options.reason(on: good), nil)
        try expectEqual(options.reason(on: attest), .string("receipt-kind-mismatch"))
        try expectEqual(
            options.reason(on: good) { $0.environment = "production" },
            .string("receipt-environment-mismatch")
        )
        try expectEqual(
            options.reason(on: good) { $0.newerThan = "now" },
            .string("receipt-not-newer")
        )
        let endless = key.receipt(
            .refreshed(riskMetric: 3),
            clientDataHash: [1],
            at: now,
            replacing: [21: String?.none]
        )
        try expectEqual(options.reason(on: endless), .string("receipt-period-implausible"))
    }

    /// An option and what is done to it.
    struct Misuse: Sendable, CustomTestStringConvertible {
        let place: String
        let change: @Sendable (inout ReceiptTrial.Options) -> Void

        init(_ place: String, _ change: @escaping @Sendable (inout ReceiptTrial.Options) -> Void) {
            self.place = place
            self.change = change
        }

        var testDescription: String { place }
    }

    static let misuses: [Misuse] = [
        Misuse("--app-id", { $0.appIDs = [] }), Misuse("--public-key", { $0.publicKey = "" }),
        Misuse("--at", { $0.at = "" }), Misuse("--max-age", { $0.maxAge = "5" }),
        Misuse("--environment", { $0.environment = "production" }),
        Misuse("--newer-than", { $0.newerThan = "now" }),
        Misuse(
            "--environment",
            {
                $0.isRenewed = true
                $0.environment = "sandbox"
            }
        ),
        Misuse("--max-age", { $0.maxAge = "-5m" }), Misuse("--max-age", { $0.maxAge = "m" }),
        Misuse(
            "--max-age",
            {
                $0.maxAge = "5m"
                $0.at = nil
            }
        ),

    ]

    @Test(arguments: misuses)
    func `an option that cannot be meant is wrong usage and named`(_ misuse: Misuse) throws {
        var options = ReceiptTrial.Options()
        options.appIDs = ["ABCDE12345.com.example.shop"]
        options.at = "2026-04-20T10:00:00Z"
        _ = try ReceiptTrial(options, now: now)
        misuse.change(&options)
        let error = #expect(throws: UsageError.self) { try ReceiptTrial(options, now: now) }
        expectEqual(error?.place, misuse.place)
    }
}
