import AppAttest
import Cryptography
import Encodings
import Expectations
import SoftwareAuthenticator
import TestSupport
import Testing

@testable import ConfigurationReading

extension AttestationTrial.Options: TrialOptions {
    init(_ vector: AttestationVector) {
        self.init()
        appIDs = [vector.appId]
        environments = [vector.environment]
        keyID = vector.keyId
        clientDataHash = vector.clientDataHashB64
        at = vector.verifyAt
        root = vector.root
    }

    func report(on bytes: [UInt8]) throws -> TrialReport {
        try AttestationTrial(self, now: now).report(on: bytes)
    }
}

let now = UnixTime(seconds: 1_800_000_000)

@Suite struct AttestationTrialTests {
    @Test(arguments: SharedVectors.attestations)
    func `a genuine attestation is accepted with its facts`(_ vector: AttestationVector) throws {
        let object = try bytes(vector.attestationB64)
        let report = try AttestationTrial.Options(vector).report(on: object)
        expectEqual(report.status, .accepted)
        expectEqual(report.json["verdict"], .string("accept"))
        expectEqual(report.json["public_key"], .string(vector.publicKeyX963B64))
        expectEqual(report.json["key_id"], .string(vector.keyId))
        expectEqual(report.json["app_id"], .string(vector.appId))
        expectEqual(report.json["environment"], .string(vector.environment))
        expectEqual(report.json["counter"], .number(0))
        expectEqual(report.json["os_version"], .text(vector.osVersion))
        expectEqual(report.json["platform"], .text(vector.platform))
        let receipt = vector.checked.receipt.chainToAppleRootCaG3 ? "accept" : "refuse"
        expectEqual(report.json["receipt"]?["verdict"], .string(receipt))
        #expect(!report.json.line.contains("\n"))
    }

    @Test(arguments: SharedVectors.attestations)
    func `a genuine attestation is refused with anything else expected`(
        _ vector: AttestationVector
    ) throws {
        let options = AttestationTrial.Options(vector)
        let object = try bytes(vector.attestationB64)
        let end = try #require(UnixTime(iso8601: vector.leafNotAfter))
        try expectEqual(options.reason(on: object) { $0.at = vector.leafNotAfter }, nil)
        for text in [
            end.advanced(bySeconds: 1).iso8601,
            String(end.advanced(bySeconds: 1).iso8601.dropLast()) + "+00:00",
        ] {
            try expectEqual(
                options.reason(on: object) { $0.at = text },
                .string("certificate-expired")
            )
        }
        try expectEqual(
            options.reason(on: object) { $0.appIDs = ["ABCDE12345.com.example.shop"] },
            .string("app-mismatch")
        )
        let other = vector.environment == "production" ? "development" : "production"
        try expectEqual(
            options.reason(on: object) { $0.environments = [other] },
            .string("environment-mismatch")
        )
        let zeros = Base64.text([UInt8](repeating: 0, count: 32))
        try expectEqual(options.reason(on: object) { $0.keyID = zeros }, .string("key-id-mismatch"))
        try expectEqual(
            options.reason(on: object) { $0.clientDataHash = zeros },
            .string("nonce-mismatch")
        )
        try expectEqual(options.reason(on: object + [0]), .string("attestation-malformed"))
        try expectEqual(options.reason(on: object.dropLast()), .string("attestation-malformed"))
        var altered = object
        altered[altered.count - 1] ^= 1
        #expect(try options.reason(on: altered) != nil)
    }

    @Test(arguments: SharedVectors.attestations)
    func `one of several accepted apps and environments is enough`(
        _ vector: AttestationVector
    ) throws {
        let object = try bytes(vector.attestationB64)
        let reason = try AttestationTrial.Options(vector).reason(on: object) {
            $0.appIDs.insert("ABCDE12345.com.example.shop", at: 0)
            $0.environments = ["production", "development"]
        }
        expectEqual(reason, nil)
    }

    @Test(arguments: SharedVectors.attestations)
    func `the diagnosis says how the app hashed the challenge`(
        _ vector: AttestationVector
    ) throws {
        guard let challenge = vector.challengeB64.flatMap({ Base64.decode($0) }) else { return }
        var options = AttestationTrial.Options(vector)
        options.challenge = challenge
        let report = try options.report(on: bytes(vector.attestationB64))
        let expected: [JSONValue] =
            vector.clientDataHashFormedAs == "raw" ? [.string("not-hashed")] : []
        expectEqual(report.json["diagnosis"], .array(expected))
        expectEqual(report.status, .accepted)
    }

    @Test(arguments: AttestationDamage.allCases)
    func `an authority of one's own is trusted by its PEM, and damage refused`(
        _ damage: AttestationDamage
    ) throws {
        let authority = SoftwareAuthority(seed: [1], madeAt: now)
        let device = SoftwareDevice(
            authority: authority,
            appID: "ABCDE12345.com.example.shop",
            environment: .production,
            shape: .beforeTwentySeven
        )
        let key = device.makeKey()
        let hash = [UInt8](repeating: 9, count: 32)
        var options = AttestationTrial.Options()
        options.appIDs = [device.appID]
        options.environments = ["production"]
        options.keyID = key.keyID.base64
        options.clientDataHash = Base64.text(hash)
        options.at = "now"
        let object = key.attestation(clientDataHash: hash, at: now)
        try expectEqual(options.reason(on: object), .string("certificate-untrusted"))
        options.root = Array(authority.rootPEM.utf8)
        let report = try options.report(on: object)
        expectEqual(report.status, .accepted)
        expectEqual(report.json["receipt"]?["verdict"], .string("accept"))
        let damaged = key.attestation(clientDataHash: hash, at: now, damage: damage)
        try expectEqual(options.reason(on: damaged), .string(damage.refusal.rawValue))
    }

    /// An option and what is done to it.
    struct Misuse: Sendable, CustomTestStringConvertible {
        let place: String
        let change: @Sendable (inout AttestationTrial.Options) -> Void

        init(
            _ place: String,
            _ change: @escaping @Sendable (inout AttestationTrial.Options) -> Void
        ) {
            self.place = place
            self.change = change
        }

        var testDescription: String { place }
    }

    static let misuses: [Misuse] = [
        Misuse("--app-id", { $0.appIDs = [] }), Misuse("--app-id", { $0.appIDs = [""] }),
        Misuse("--environment", { $0.environments = [] }),
        Misuse("--environment", { $0.environments = ["sandbox"] }),
        Misuse("--key-id", { $0.keyID = "" }), Misuse("--key-id", { $0.keyID = "AAAA" }),
        Misuse("--key-id", { $0.keyID = "*" }),
        Misuse("--client-data-hash", { $0.clientDataHash = "?" }),
        Misuse("--at", { $0.at = "yesterday" }), Misuse("--at", { $0.at = "2026-02-30T00:00:00Z" }),
        Misuse("--at", { $0.at = "2026-02-28T00:00:00+2:00" }),
        Misuse("--root", { $0.root = [1, 2, 3] }),

    ]

    @Test(arguments: misuses)
    func `an option that cannot be meant is wrong usage and named`(_ misuse: Misuse) throws {
        var options = AttestationTrial.Options()
        options.appIDs = ["ABCDE12345.com.example.shop"]
        options.environments = ["production"]
        options.keyID = Base64.text([UInt8](repeating: 0, count: 32))
        options.clientDataHash = "AQID"
        options.at = "2026-04-20T10:00:00Z"
        _ = try AttestationTrial(options, now: now)
        misuse.change(&options)
        let error = #expect(throws: UsageError.self) { try AttestationTrial(options, now: now) }
        expectEqual(error?.place, misuse.place)
        expectEqual(error?.message.hasPrefix(misuse.place + ": "), true)
    }

    @Test(arguments: [
        ("2026-04-20T10:00:00Z", 0), ("2026-04-20T10:00:00.25z", 0),
        ("2026-04-20t12:00:00+02:00", 0), ("2026-04-20T04:30:00.000001-05:30", 0),
        ("2026-04-20T10:00:01+00:00", 1),
    ])
    func `times are those of RFC 3339`(_ text: String, _ seconds: Int64) throws {
        let base = try #require(UnixTime(iso8601: "2026-04-20T10:00:00Z"))
        let time = try OptionText("--at", text).time(now: now)
        expectEqual(time.seconds, base.seconds + seconds)
    }
}
