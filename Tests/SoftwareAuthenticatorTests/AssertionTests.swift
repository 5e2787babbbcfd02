import AppAttest
import Cryptography
import Encodings
import Expectations
import RequestBinding
import SoftwareAuthenticator
import Testing

@Suite struct AssertionTests {
    @Test(arguments: Bench.shapes)
    func `assertions verify and count from one`(_ shape: DeviceShape) throws {
        var bench = Bench(shape)
        for count in UInt32(1)...3 {
            let object = bench.key.assertion(clientDataHash: Bench.hash)
            try expectEqual(UnverifiedAssertion(bytes: object).counter.rawValue, count)
            let stored = SignCounter(rawValue: count - 1)
            expectEqual(bench.assertionRefusal(object, after: stored), nil)
            expectEqual(bench.assertionRefusal(object, after: bench.key.counter), .counterReplayed)
        }
    }

    @Test(arguments: Bench.shapes, AssertionDamage.allCases)
    func `each damage is refused for what it is, and each oddity accepted`(
        _ shape: DeviceShape,
        _ damage: AssertionDamage
    ) {
        var bench = Bench(shape)
        // Several, since signatures are random and an encoding may be damaged by chance only.
        for _ in 0..<8 {
            _ = bench.key.assertion(clientDataHash: Bench.hash)
            let stored = bench.key.counter
            let object = bench.key.assertion(clientDataHash: Bench.hash, damage: damage)
            expectEqual(bench.assertionRefusal(object, after: stored), damage.refusal)
        }
    }

    @Test func `damage of each kind that a verifier knows can be done`() {
        let policies: Set<AssertionRefusal.Reason> = [.categoryRefused, .versionRefused]
        expectEqual(
            Set(AssertionDamage.allCases.compactMap(\.refusal)),
            Set(AssertionRefusal.Reason.allCases).subtracting(policies)
        )
    }

    @Test(arguments: [
        (DeviceShape.beforeTwentySeven, 37, UInt8(0x40)),
        (.iOS27(category: .development, bundleVersion: "1314"), 102, 0xC0),
        (.macOS27(category: .development, bundleVersion: nil), 153, 0x40),
    ])
    func `authenticator data have the lengths and flags of genuine ones`(
        _ shape: DeviceShape,
        _ count: Int,
        _ flags: UInt8
    ) throws {
        var bench = Bench(shape)
        let object = bench.key.assertion(clientDataHash: Bench.hash)
        try expectEqual(UnverifiedAssertion(bytes: object).flags, flags)
        // 1 map, 10 and 18 keys, 2 and 2 heads, and a signature of 70…72 bytes, rarely fewer.
        #expect((count + 33 + 66...count + 33 + 72).contains(object.count))
    }

    @Test func `a long bundle version is encoded as CBOR wants it`() {
        let version = String(repeating: "1", count: 300)
        var bench = Bench(.iOS27(category: .appStore, bundleVersion: version))
        let object = bench.key.assertion(clientDataHash: Bench.hash)
        expectEqual(bench.assertionRefusal(object, after: .zero), nil)
    }

    @Test func `a seed makes the same key again, and another App ID another`() {
        let bench = Bench(.beforeTwentySeven)
        let key = bench.device.makeKey(seed: [1])
        expectEqual(bench.device.makeKey(seed: [1]).keyID, key.keyID)
        #expect(bench.device.makeKey(seed: [2]).keyID != key.keyID)
        let other = SoftwareDevice(
            authority: Bench.authority,
            appID: "other",
            environment: .production,
            shape: .beforeTwentySeven
        )
        #expect(other.makeKey(seed: [1]).keyID != key.keyID)
    }

    @Test func `client mistakes are the ones that the diagnosis knows`() throws {
        var bench = Bench(.beforeTwentySeven)
        let data = Array("client data".utf8)
        let hash = SHA256.digest(of: data).array
        func mistake(_ object: [UInt8]) throws -> ClientMistake? {
            AssertionDiagnosis.mistake(
                in: try UnverifiedAssertion(bytes: object),
                clientData: data,
                key: bench.key.publicKey
            )
        }
        let twice = bench.key.assertion(clientDataHash: hash, damage: .hashedTwice)
        let once = bench.key.assertion(clientDataHash: hash, damage: .nonceAsDigest)
        let raw = bench.key.assertion(clientDataHash: data)
        let right = bench.key.assertion(clientData: data)
        try expectEqual(mistake(twice), .hashedTwice)
        try expectEqual(mistake(once), .nonceAsDigest)
        try expectEqual(mistake(raw), .notHashed)
        try expectEqual(mistake(right), ClientMistake.none)
    }

    @Test func `a request's proof is over the client data of its form`() throws {
        var bench = Bench(.beforeTwentySeven)
        let request = SoftwareKey.Request(
            method: "POST",
            target: "/v1/orders?dry=1",
            content: Array("{}".utf8),
            challenge: "AQEA",
            fields: ["idempotency-key": "8e03978e"]
        )
        let digest = SHA256.digest(of: request.content).array
        let lines = RequestLines.clientData(
            .all,
            of: RequestLines.Request(
                method: "POST",
                target: "/v1/orders?dry=1",
                digest: digest,
                headers: [("idempotency-key", "8e03978e"), ("absent", nil)]
            ),
            challenge: "AQEA"
        )
        let forms: [(SigningForm, [UInt8])] = [
            (.lines(.all, headers: ["idempotency-key", "absent"]), lines),
            (.content, request.content), (.challenge, Array("AQEA".utf8)),
        ]
        for (form, data) in forms {
            let stored = bench.key.counter
            let proof = bench.key.proof(of: request, signing: form)
            let object = try #require(Base64.decode(proof.assertion))
            let hash = SHA256.digest(of: data).array
            expectEqual(bench.assertionRefusal(object, hash: hash, after: stored), nil)
            expectEqual(proof.keyID, bench.key.keyID.base64)
            expectEqual(proof.fields.map(\.name).last, "Content-Digest")
            let value = Array((proof.contentDigest ?? "").utf8)
            expectEqual(ContentDigest.read(value.span), .digest(digest))
        }
    }

    @Test func `a line of keys import has the fields and no line feed`() {
        var key = Bench(.beforeTwentySeven).device.makeKey(seed: [1])
        key.counter = SignCounter(rawValue: 7)
        let line = key.importLine(as: .test)
        expectEqual(
            line,
            #"{"key_id":"\#(key.keyID.base64)","app_id":"\#(Bench.appID)","#
                + #""environment":"test","public_key":"\#(Base64.text(key.publicKey.x963))","#
                + #""counter":7}"#
        )
    }
}
