import AppAttest
import Cryptography
import Expectations
import KeyStore
import RequestBinding
import Rules
import SoftwareAuthenticator
import Testing
import Verification

@Suite struct SigningFormTests {
    static let subsets: [SignedParts] = (1...15).map { SignedParts(rawValue: $0) }

    private static func rule(_ parts: SignedParts, headers: [String] = []) -> Rule {
        Trial.rule { demands in
            demands.signing = .lines(parts, headers: headers)
            demands.challenge = parts.contains(.challenge) ? .required : .none
            demands.body = parts.contains(.body) ? .streamed(limit: .mebibytes(1)) : .none
        }
    }

    @Test(arguments: subsets)
    func `a request that signs this subset of the parts passes`(parts: SignedParts) throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let verdict = try trial.send(try trial.request(), by: &key, Self.rule(parts))
        expectEqual(verdict.outcome, .pass)
        expectEqual((verdict.expectedDigest != nil), parts.contains(.body))
    }

    /// Exactly the parts that are signed can't be changed.
    @Test(arguments: subsets)
    func `what is signed can't be changed, and the rest can`(parts: SignedParts) throws {
        let changes: [(SignedParts, (inout Wire) -> Void)] = [
            (.method, { $0.method = "PATCH" }), (.target, { $0.target += "&more=1" }),
            (
                .body,
                {
                    let digest = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
                    $0.set("Content-Digest", digest)
                }
            ),
        ]
        for (part, change) in changes {
            var trial = try Trial()
            var key = trial.enrolledKey()
            let verdict = try trial.send(
                try trial.request(),
                by: &key,
                Self.rule(parts),
                onTheWay: change
            )
            let expected: Verdict.Outcome =
                parts.contains(part) ? .refuse(.signatureMismatch) : .pass
            expectEqual(verdict.outcome, expected)
        }
    }

    @Test(arguments: subsets)
    func `a request that signs another subset is refused`(parts: SignedParts) throws {
        for other in Self.subsets where other != parts {
            var trial = try Trial()
            var key = trial.enrolledKey()
            let request = try trial.request()
            let signing = SigningForm.lines(other, headers: [])
            let proof = key.proof(of: request, signing: signing)
            let verdict = try trial.judge(Wire(request, proof), Self.rule(parts))
            expectEqual(verdict.outcome, .refuse(.signatureMismatch))
        }
    }

    @Test func `a request without content signs the digest of nothing and need not say it`() throws
    {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let request = try trial.request("GET", "/", content: "")
        let verdict = try trial.send(request, by: &key) { wire in
            expectEqual(wire.value("Content-Digest"), nil)
        }
        expectEqual(verdict.outcome, .pass)
        expectEqual(verdict.expectedDigest, nil)
        let stated = try trial.send(try trial.request("GET", "/", content: ""), by: &key) {
            $0.set("Content-Digest", "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:")
            $0.framing = .stated(0)
        }
        expectEqual(stated.outcome, .pass)
    }

    @Test func `an absolute target is signed as it stands in origin-form`() throws {
        for (sent, signed) in [
            ("http://api.example.com/v1/orders?dry=1", "/v1/orders?dry=1"),
            ("http://api.example.com?dry=1", "/?dry=1"), ("http://api.example.com", "/"),
        ] {
            var trial = try Trial()
            var key = trial.enrolledKey()
            let request = try trial.request("POST", signed)
            let verdict = try trial.send(request, by: &key) { $0.target = sent }
            expectEqual(verdict.outcome, .pass, "\(sent)")
        }
    }

    @Test func `an optional challenge may be left out, and its line is then a hyphen`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let rule = Trial.rule { $0.challenge = .optional }
        var request = try trial.request()
        request.challenge = nil
        let without = try trial.send(request, by: &key, rule)
        expectEqual(without.outcome, .pass)
        // A counter that alone stops the replay has to be on disk.
        #expect(without.pending != .nothing)
        try expectEqual(trial.send(try trial.request(), by: &key, rule).outcome, .pass)
        let stripped = try trial.send(try trial.request(), by: &key, rule) {
            $0.remove("App-Attest-Challenge")
        }
        expectEqual(stripped.outcome, .refuse(.signatureMismatch))
    }

    @Test func `a challenge that nobody asks for is not looked at`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let rule = Self.rule([.method, .target])
        let verdict = try trial.send(try trial.request(), by: &key, rule) {
            $0.set("App-Attest-Challenge", "garbage")
        }
        expectEqual(verdict.outcome, .pass)
    }

    // MARK: Signed header fields

    private static let signed = rule(.all, headers: ["idempotency-key", "x-tenant"])

    private func outcome(
        signing fields: [String: String],
        onTheWay edit: (inout Wire) -> Void = { _ in }
    ) throws -> Verdict.Outcome {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var request = try trial.request()
        request.fields = fields
        return try trial.send(request, by: &key, Self.signed, onTheWay: edit).outcome
    }

    @Test func `signed fields that are there, empty or absent pass as they were signed`() throws {
        try expectEqual(outcome(signing: ["idempotency-key": "8e03978e", "x-tenant": "7"]), .pass)
        try expectEqual(outcome(signing: ["idempotency-key": "", "x-tenant": "7"]), .pass)
        try expectEqual(outcome(signing: ["x-tenant": "7"]), .pass)
        try expectEqual(outcome(signing: [:]), .pass)
    }

    @Test(arguments: ["7", " 7", "7 ", "\t 7 \t", "   7"])
    func `white space around a signed value is not signed`(sent: String) throws {
        try expectEqual(outcome(signing: ["x-tenant": "7"]) { $0.set("x-tenant", sent) }, .pass)
        let inside = try outcome(signing: ["x-tenant": "7  8"]) { $0.set("x-tenant", "7 8") }
        expectEqual(inside, .refuse(.signatureMismatch))
        let empty = try outcome(signing: ["x-tenant": ""]) { $0.set("x-tenant", " \t") }
        expectEqual(empty, .pass)
    }

    @Test func `a signed field can't be changed, added, taken away or emptied`() throws {
        let both = ["idempotency-key": "8e03978e", "x-tenant": "7"]
        let mismatch = Verdict.Outcome.refuse(.signatureMismatch)
        try expectEqual(outcome(signing: both) { $0.set("x-tenant", "8") }, mismatch)
        try expectEqual(outcome(signing: both) { $0.remove("x-tenant") }, mismatch)
        try expectEqual(outcome(signing: both) { $0.set("x-tenant", "") }, mismatch)
        try expectEqual(outcome(signing: ["x-tenant": ""]) { $0.remove("x-tenant") }, mismatch)
        try expectEqual(outcome(signing: [:]) { $0.set("x-tenant", "") }, mismatch)
    }

    @Test func `a signed field comes in one line, and the case of its name is of no account`()
        throws
    {
        let fields = ["idempotency-key": "a", "x-tenant": "7, 8"]
        let spelled = try outcome(signing: fields) {
            $0.remove("x-tenant")
            $0.fields.append(("x-TENANT", "7, 8"))
        }
        expectEqual(spelled, .pass)
        let split = try outcome(signing: fields) {
            $0.remove("x-tenant")
            $0.fields.append(("X-Tenant", "7"))
            $0.fields.append(("x-TENANT", "8"))
        }
        expectEqual(split, .refuse(.signedFieldRepeated))
        for value in ["7, 8", ""] {
            let doubled = try outcome(signing: fields) { $0.fields.append(("X-Tenant", value)) }
            expectEqual(doubled, .refuse(.signedFieldRepeated))
        }
    }

    // MARK: The forms of apps that sign already

    @Test func `in the content form the content's bytes are signed and nothing else`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let rule = Trial.rule { demands in
            demands.signing = .content
            demands.challenge = .none
            demands.body = .held(limit: .mebibytes(1), memory: .kibibytes(1))
        }
        let elsewhere = try trial.send(try trial.request(), by: &key, rule) {
            $0.method = "PUT"
            $0.target = "/elsewhere"
            $0.remove("Content-Digest")
        }
        expectEqual(elsewhere.outcome, .pass)
        #expect(elsewhere.pending != .nothing)
        let changed = try trial.send(try trial.request(), by: &key, rule) {
            $0.content[0] ^= 1
            $0.remove("Content-Digest")
        }
        expectEqual(changed.outcome, .refuse(.signatureMismatch))
        let empty = try trial.send(try trial.request(content: ""), by: &key, rule)
        expectEqual(empty.outcome, .pass)
    }

    @Test func `in the challenge form the challenge's bytes are signed and nothing else`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let rule = Trial.rule { demands in
            demands.signing = .challenge
            demands.body = .none
        }
        let elsewhere = try trial.send(try trial.request(), by: &key, rule) {
            $0.method = "PUT"
            $0.content = [1, 2, 3]
            $0.set("Content-Digest", "no digest at all")
        }
        expectEqual(elsewhere.outcome, .pass)
        #expect(elsewhere.pending != .nothing)
        let other = try trial.challenge()
        let changed = try trial.send(try trial.request(), by: &key, rule) {
            $0.set("App-Attest-Challenge", other)
        }
        expectEqual(changed.outcome, .refuse(.signatureMismatch))
    }

    @Test func `only where the line form signs a required challenge nobody waits for the disk`()
        throws
    {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let all = try trial.send(try trial.request(), by: &key, Self.rule(.all))
        #expect(all.outcome == .pass && all.pending == .nothing)
        let part = try trial.send(try trial.request(), by: &key, Self.rule([.method, .target]))
        #expect(part.outcome == .pass && part.pending != .nothing)
    }
}
