import Cryptography
import Encodings
import Expectations
import Testing

@testable import AppAttest

@Suite struct AssertionTests {
    private let device = P256PrivateKey(seed: Array("device".utf8).span)
    private let app = AppIDHash(appID: "ABCDE12345.com.example.shop")
    private let clientData = Array(#"{"path": "/v1/orders", "n": 1}"#.utf8)

    private func assertion(
        handing hash: [UInt8],
        counter: [UInt8] = [0, 0, 0, 1],
        extensions: [UInt8] = [],
        nonceIsDigest: Bool = false
    ) -> [UInt8] {
        let data = app.bytes + [0x40] + counter + extensions
        let nonce = SHA256.digest(of: data + hash)
        let signature =
            nonceIsDigest
            ? device.signature(digest: nonce) : device.signature(message: nonce.array.span)
        return CBORValue.map([
            .init(.text("signature"), .bytes(signature)),
            .init(.text("authenticatorData"), .bytes(data)),
        ]).encoded
    }

    private func verified(_ object: [UInt8]) throws -> VerifiedAssertion {
        try UnverifiedAssertion(bytes: object).verified(
            clientDataHash: SHA256.digest(of: clientData).array.span,
            key: device.publicKey,
            app: app
        )
    }

    private func hash(_ bytes: [UInt8]) -> [UInt8] { SHA256.digest(of: bytes).array }

    @Test func `counters are big-endian and compared as numbers`() throws {
        let object = assertion(handing: hash(clientData), counter: [0x80, 0, 1, 0])
        let verified = try verified(object)
        expectEqual(verified.counter.rawValue, 0x8000_0100)
        try verified.checkCounter(after: SignCounter(rawValue: 0x8000_00FF))
        expectEqual(
            AssertionRefusal.reason {
                try verified.checkCounter(after: SignCounter(rawValue: .max))
            },
            .counterReplayed
        )
    }

    @Test func `the counter is checked last, and every public form checks it`() throws {
        let object = assertion(handing: hash(clientData), counter: [0, 0, 0, 7])
        let assertion = try UnverifiedAssertion(bytes: object)
        let (six, seven) = (SignCounter(rawValue: 6), SignCounter(rawValue: 7))
        let (key, hash) = (device.publicKey, hash(clientData))
        func forms(_ app: AppIDHash, _ stored: SignCounter) -> [AssertionRefusalReason?] {
            [
                AssertionRefusal.reason {
                    _ = try assertion.verified(
                        clientData: clientData,
                        key: key,
                        app: app,
                        after: stored
                    )
                },
                AssertionRefusal.reason {
                    _ = try assertion.verified(
                        clientDataHash: hash,
                        key: key,
                        app: app,
                        after: stored
                    )
                },
                AssertionRefusal.reason {
                    let hash = ContiguousArray(hash)
                    _ = try assertion.verified(
                        clientDataHash: hash.span,
                        key: key,
                        app: app,
                        after: stored
                    )
                },
            ]
        }
        expectEqual(forms(app, six), [nil, nil, nil])
        expectEqual(forms(app, seven), Array(repeating: .counterReplayed, count: 3))
        let other = AppIDHash(appID: "ABCDE12345.com.example.other")
        expectEqual(forms(other, seven), Array(repeating: .appMismatch, count: 3))
    }

    @Test func `a first counter of 0 is refused`() throws {
        let verified = try verified(assertion(handing: hash(clientData), counter: [0, 0, 0, 0]))
        expectEqual(
            AssertionRefusal.reason { try verified.checkCounter(after: .zero) },
            .counterReplayed
        )
    }

    @Test func `a build is judged by its category, then by its version`() throws {
        let map = CBORValue.map([
            .init(.text("apple_bundle_version_01"), .text("42")),
            .init(.text("apple_something_new"), .array([.null, .unsigned(7)])),
            .init(.text("apple_validation_category_01"), .bytes([4, 0, 0, 0])),
        ]).encoded
        let verified = try verified(assertion(handing: hash(clientData), extensions: map))
        expectEqual(verified.extensions.validationCategory, .appStore)
        expectEqual(verified.extensions.bundleVersion, "42")
        func reason(_ categories: Set<ValidationCategory>?, _ versions: Set<String>?)
            -> AssertionRefusal.Reason?
        {
            AssertionRefusal.reason {
                try verified.checkBuild(
                    BuildPolicy(
                        categories: categories,
                        acceptsAbsentCategory: false,
                        bundleVersions: versions,
                        acceptsAbsentBundleVersion: false
                    )
                )
            }
        }
        expectEqual(reason(nil, nil), nil)
        expectEqual(reason([.appStore, .testFlight], ["41", "42"]), nil)
        expectEqual(reason([.testFlight], ["41"]), .categoryRefused)
        expectEqual(reason([.appStore], ["41"]), .versionRefused)
    }

    @Test(
        arguments: [
            ([0x00], "not a map"),
            ([0xA0, 0x00], "a byte after the map"),
            ([0xA1, 0x01, 0x02], "a key that is no text"),
            ([0xA2, 0x61, 0x61, 0x01, 0x61, 0x61, 0x02], "a key twice"),
            ([0xBF, 0xFF], "indefinite length"),
            ([0xA1, 0x61, 0x61], "a value missing"),
            ([0xA1, 0x78, 0x01, 0x61, 0x01], "a length not in its shortest form"),
            ([0xA1, 0x61, 0xFF, 0x01], "a key that is not UTF-8"),
        ] as [([UInt8], String)]
    )
    func `what follows the fixed part is one strict map or malformed`(
        bytes: [UInt8],
        note: String
    ) {
        let object = assertion(handing: hash(clientData), extensions: bytes)
        expectEqual(AssertionRefusal.reason { _ = try verified(object) }, .malformed, "\(note)")
    }

    @Test func `an empty map is no extensions, and a category of 5 bytes malformed`() throws {
        let empty = assertion(handing: hash(clientData), extensions: [0xA0])
        try expectEqual(verified(empty).extensions, .none)
        let map = CBORValue.map([
            .init(.text("apple_validation_category_01"), .bytes([4, 0, 0, 0, 0]))
        ]).encoded
        expectEqual(
            AssertionRefusal.reason {
                _ = try verified(assertion(handing: hash(clientData), extensions: map))
            },
            .malformed
        )
    }

    @Test func `each known mistake is found, and none of them is accepted`() throws {
        let hex = Array(
            SHA256.digest(of: clientData).array.flatMap { byte in
                let digits = Array("0123456789abcdef".utf8)
                return [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        )
        let compact = Array(#"{"path":"/v1/orders","n":1}"#.utf8)
        let escaped = Array(#"{"path": "\/v1\/orders", "n": 1}"#.utf8)
        let mistakes: [(ClientMistake, [UInt8])] = [
            (.notHashed, clientData),
            (.hashedTwice, hash(hash(clientData))),
            (.hashAsHex, hex),
            (.hashOfHexHash, hash(hex)),
            (.lineFeedAdded, hash(clientData + [0x0A])),
            (.jsonCompacted, hash(compact)),
            (.jsonSlashesEscaped, hash(escaped)),
            (.empty, hash([])),
        ]
        for (mistake, handed) in mistakes {
            let object = assertion(handing: handed)
            expectEqual(AssertionRefusal.reason { _ = try verified(object) }, .signatureMismatch)
            let found = AssertionDiagnosis.mistake(
                in: try UnverifiedAssertion(bytes: object),
                clientData: clientData,
                key: device.publicKey
            )
            expectEqual(found, mistake)
        }
    }

    @Test func `the nonce taken as the digest is found, and refused`() throws {
        let object = assertion(handing: hash(clientData), nonceIsDigest: true)
        expectEqual(AssertionRefusal.reason { _ = try verified(object) }, .signatureMismatch)
        let assertion = try UnverifiedAssertion(bytes: object)
        let key = device.publicKey
        expectEqual(
            AssertionDiagnosis.mistake(in: assertion, clientData: clientData, key: key),
            .nonceAsDigest
        )
        let right = try UnverifiedAssertion(bytes: self.assertion(handing: hash(clientData)))
        expectEqual(
            AssertionDiagnosis.mistake(in: right, clientDataHash: hash(clientData), key: key),
            ClientMistake.none
        )
        let other = P256PrivateKey().publicKey
        expectEqual(AssertionDiagnosis.mistake(in: right, clientData: clientData, key: other), nil)
    }

    @Test func `a key id is 44 characters of base64, and its log name is not its text`() throws {
        let id = KeyID(of: device.publicKey)
        expectEqual(id.base64.utf8.count, 44)
        expectEqual(KeyID(base64: id.base64), id)
        expectEqual(KeyID(bytes: id.bytes), id)
        expectEqual(KeyID(bytes: id.bytes.dropLast()), nil)
        expectEqual(KeyID(base64: "AAAA"), nil)
        expectEqual(id.logName.count, 12)
        #expect(!id.base64.contains(id.logName))
    }
}
