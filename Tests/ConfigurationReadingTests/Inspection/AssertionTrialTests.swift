import AppAttest
import Cryptography
import Encodings
import Expectations
import SoftwareAuthenticator
import TestSupport
import Testing

@testable import ConfigurationReading

extension AssertionTrial.Options: TrialOptions {
    init(_ vector: AssertionVector) {
        self.init()
        appIDs = [vector.appId]
        publicKey = vector.publicKeyX963B64
        previousCounter = vector.counter - 1
        clientDataHash = vector.clientDataHashB64
    }

    func report(on bytes: [UInt8]) throws -> TrialReport {
        try AssertionTrial(self).report(on: bytes)
    }
}

@Suite struct AssertionTrialTests {
    @Test(arguments: SharedVectors.assertions)
    func `a genuine assertion is accepted with its facts`(_ vector: AssertionVector) throws {
        var options = AssertionTrial.Options(vector)
        let report = try options.report(on: bytes(vector.assertionB64))
        expectEqual(report.status, .accepted)
        expectEqual(report.json["counter"], .number(Int64(vector.counter)))
        expectEqual(report.json["key_id"], .string(vector.keyId))
        expectEqual(report.json["app_id"], .string(vector.appId))
        expectEqual(report.json["diagnosis"], nil)
        options.clientDataHash = nil
        options.clientData = Base64.decode(vector.clientDataB64)
        try expectEqual(options.reason(on: bytes(vector.assertionB64)), nil)
    }

    @Test(arguments: SharedVectors.assertions)
    func `a genuine assertion is refused with anything else expected`(
        _ vector: AssertionVector
    ) throws {
        let options = AssertionTrial.Options(vector)
        let object = try bytes(vector.assertionB64)
        try expectEqual(
            options.reason(on: object) { $0.previousCounter = vector.counter },
            .string("counter-replayed")
        )
        try expectEqual(
            options.reason(on: object) { $0.previousCounter = .max },
            .string("counter-replayed")
        )
        try expectEqual(
            options.reason(on: object) { $0.appIDs = ["ABCDE12345.com.example.shop"] },
            .string("app-mismatch")
        )
        let other = P256PrivateKey().publicKey
        try expectEqual(
            options.reason(on: object) { $0.publicKey = Base64.text(other.x963) },
            .string("signature-mismatch")
        )
        try expectEqual(
            options.reason(on: object) { $0.clientDataHash = Base64.text([1]) },
            .string("signature-mismatch")
        )
        try expectEqual(options.reason(on: object + [0]), .string("assertion-malformed"))
        try expectEqual(options.reason(on: []), .string("assertion-malformed"))
        for index in object.indices {
            var altered = object
            altered[index] ^= 1
            #expect(try options.reason(on: altered) != nil, "byte \(index)")
        }
    }

    @Test func `the app that the assertion claims is the one of several that counts`() throws {
        var (options, key) = Self.software()
        let object = key.assertion(clientDataHash: Self.hash)
        options.appIDs.insert("ABCDE12345.com.example.other", at: 0)
        let report = try options.report(on: object)
        expectEqual(report.json["app_id"], .string("ABCDE12345.com.example.shop"))
        #expect(try options.reason(on: object) { $0.appIDs.removeLast() } != nil)
    }

    @Test(arguments: AssertionDamage.allCases)
    func `damage is refused for what it is`(_ damage: AssertionDamage) throws {
        var (options, key) = Self.software()
        _ = key.assertion(clientDataHash: Self.hash)
        options.previousCounter = 1
        let object = key.assertion(clientDataHash: Self.hash, damage: damage)
        try expectEqual(options.reason(on: object), .text(damage.refusal?.rawValue).ifString)
    }

    @Test func `the diagnosis names the mistake and leaves the verdict alone`() throws {
        var (options, key) = Self.software()
        let data = Array("{ \"a\": 1 }".utf8)
        options.clientDataHash = nil
        options.clientData = data
        options.diagnoses = true
        func report(_ object: [UInt8]) throws -> (TrialReport.Status, JSONValue?) {
            let report = try options.report(on: object)
            return (report.status, report.json["diagnosis"])
        }
        let compacted = key.assertion(clientData: Array("{\"a\":1}".utf8))
        #expect(try report(compacted) == (.refused, .array([.string("json-white-space-removed")])))
        let raw = key.assertion(clientDataHash: data)
        #expect(try report(raw) == (.refused, .array([.string("not-hashed")])))
        let other = key.assertion(clientData: [1, 2, 3])
        #expect(try report(other) == (.refused, .array([])))
        let right = key.assertion(clientData: data)
        #expect(try report(right) == (.accepted, .array([])))
        #expect(try report([0xA2]) == (.refused, .array([])))
        options.clientData = nil
        options.clientDataHash = Base64.text(SHA256.digest(of: data).array)
        let twice = key.assertion(
            clientDataHash: SHA256.digest(of: data).array,
            damage: .hashedTwice
        )
        #expect(try report(twice) == (.refused, .array([.string("hashed-twice")])))
    }

    /// An option and what is done to it.
    struct Misuse: Sendable, CustomTestStringConvertible {
        let place: String
        let change: @Sendable (inout AssertionTrial.Options) -> Void

        init(_ place: String, _ change: @escaping @Sendable (inout AssertionTrial.Options) -> Void)
        {
            self.place = place
            self.change = change
        }

        var testDescription: String { place }
    }

    static let misuses: [Misuse] = [
        Misuse("--app-id", { $0.appIDs = [] }), Misuse("--public-key", { $0.publicKey = "AAAA" }),
        Misuse(
            "--public-key",
            { $0.publicKey = Base64.text([4] + [UInt8](repeating: 1, count: 64)) }
        ),
        Misuse("--client-data-hash", { $0.clientDataHash = "%" }),
        Misuse("--client-data-hash", { $0.clientDataHash = nil }),
        Misuse("--client-data-hash", { $0.clientData = [1] }),

    ]

    @Test(arguments: misuses)
    func `an option that cannot be meant is wrong usage and named`(_ misuse: Misuse) throws {
        var (options, _) = Self.software()
        _ = try AssertionTrial(options)
        misuse.change(&options)
        let error = #expect(throws: UsageError.self) { try AssertionTrial(options) }
        expectEqual(error?.place, misuse.place)
    }

    private static let hash = [UInt8](repeating: 9, count: 32)

    private static func software() -> (AssertionTrial.Options, SoftwareKey) {
        let device = SoftwareDevice(
            authority: SoftwareAuthority(seed: [1], madeAt: now),
            appID: "ABCDE12345.com.example.shop",
            environment: .production,
            shape: .iOS27(category: .appStore, bundleVersion: "1")
        )
        let key = device.makeKey()
        var options = AssertionTrial.Options()
        options.appIDs = [device.appID]
        options.publicKey = Base64.text(key.publicKey.x963)
        options.clientDataHash = Base64.text(hash)
        return (options, key)
    }
}

extension JSONValue {
    /// The value itself when it is a string; `nil` for null.
    var ifString: JSONValue? {
        if case .string = self { return self }
        return nil
    }
}
