import AppAttest
import Cryptography
import Expectations
import KeyStore
import RequestBinding
import Rules
import SoftwareAuthenticator
import Testing
import Tokens
import Verification

@Suite struct SessionTests {
    private func refusal(_ verdict: Verdict) -> Refusal? {
        guard case .refuse(let refusal) = verdict.outcome else { return nil }
        return refusal
    }

    // MARK: What passes

    @Test func `a request that is signed with a session passes, and nothing is written`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        let counters = try trial.counters(key)
        for _ in 0..<10 {
            let verdict = try trial.send(trial.request(), by: &session)
            expectEqual(verdict.outcome, .pass)
            expectEqual(verdict.level, .complete)
            expectEqual(verdict.proof, .session)
            expectEqual(verdict.keyID, key.keyID)
            expectEqual(verdict.appID, Trial.appID)
            expectEqual(verdict.environment, .production)
            expectEqual(verdict.pending, .nothing)
            #expect(verdict.grant == nil)
        }
        try expectEqual(trial.counters(key), counters)
        expectEqual(trial.judge.verifications, 1)
    }

    @Test func `content that is held, streamed, absent or announced is judged as with assertions`()
        throws
    {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        let held = Trial.sessionRule {
            $0.body = .held(limit: .mebibytes(1), memory: .kibibytes(1))
        }
        for rule in [Trial.sessionRule(), held] {
            for content in ["", #"{"item":7}"#, String(repeating: "x", count: 10_000)] {
                let verdict = try trial.send(trial.request(content: content), by: &session, rule)
                expectEqual(verdict.outcome, .pass)
            }
        }
        // Held without a stated digest.
        let verdict = try trial.send(trial.request(), by: &session, held) {
            $0.remove("Content-Digest")
        }
        expectEqual(verdict.outcome, .pass)
    }

    @Test func `the sequence number is signed where the rule signs no challenge, too`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        let rule = Trial.sessionRule {
            $0.signing = .lines([.method, .target, .body], headers: ["idempotency-key"])
            $0.challenge = .none
        }
        var request = SoftwareKey.Request(method: "POST", target: "/v1/orders")
        request.fields = ["idempotency-key": "7"]
        try expectEqual(trial.send(request, by: &session, rule).outcome, .pass)
        let other = try trial.send(request, by: &session, rule) {
            $0.set("App-Attest-Sequence", "9")
        }
        expectEqual(refusal(other), .sessionMismatch)
    }

    // MARK: What does not

    @Test func `each part that is signed can't be changed`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        let rule = Trial.sessionRule { $0.signing = .lines(.all, headers: ["idempotency-key"]) }
        let edits: [(String, (inout Wire) -> Void, Refusal)] = [
            ("method", { $0.method = "PUT" }, .sessionMismatch),
            ("target", { $0.target = "/v1/orders?dry=0" }, .sessionMismatch),
            (
                "digest",
                { $0.set("Content-Digest", "sha-256=:\(String(repeating: "A", count: 43))=:") },
                .sessionMismatch
            ),
            ("number", { $0.set("App-Attest-Sequence", "1000") }, .sessionMismatch),
            ("field", { $0.set("Idempotency-Key", "8") }, .sessionMismatch),
            (
                "code", { $0.set("App-Attest-Signature", String(repeating: "A", count: 43) + "=") },
                .sessionMismatch
            ),
        ]
        for (name, edit, expected) in edits {
            var request = try trial.request()
            request.fields = ["idempotency-key": "7"]
            let verdict = try trial.send(request, by: &session, rule, onTheWay: edit)
            expectEqual(refusal(verdict), expected, "\(name)")
            expectEqual(verdict.signer, nil, "\(name)")
        }
    }

    @Test func `a number is used once, and a refused request uses none`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let session = try trial.openSession(&key)
        let request = try trial.request()
        let rule = Trial.sessionRule()
        let proof = try #require(session.proof(of: request, signing: rule.signing, as: .first))
        var forged = proof
        forged.signature = String(repeating: "A", count: 43) + "="
        expectEqual(refusal(try trial.judge(Wire(request, forged), rule)), .sessionMismatch)
        try expectEqual(trial.judge(Wire(request, proof), rule).outcome, .pass)
        expectEqual(refusal(try trial.judge(Wire(request, proof), rule)), .sessionReplayed)
    }

    @Test func `a client that knows an id and not its secret moves no window`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        var thief = SoftwareSession(id: session.id, secret: Array(repeating: 1, count: 32))
        let far = SequenceNumber.max
        let rule = Trial.sessionRule()
        let request = try trial.request()
        let stolen = try #require(thief.proof(of: request, signing: rule.signing, as: far))
        expectEqual(refusal(try trial.judge(Wire(request, stolen), rule)), .sessionMismatch)
        expectEqual(refusal(try trial.send(request, by: &thief)), .sessionMismatch)
        try expectEqual(trial.send(request, by: &session).outcome, .pass)
    }

    @Test func `numbers are read strictly`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        for text in [
            "", "0", "01", "+1", "-1", "1 ", "1.0", "0x1", "9007199254740992",
            "18446744073709551617", String(repeating: "1", count: 8_000), "\u{661}",
        ] {
            let verdict = try trial.send(trial.request(), by: &session) {
                $0.set("App-Attest-Sequence", text)
            }
            // White space around a value is no part of it (RFC 9110 §5.5).
            let expected: Refusal = text == "1 " ? .sessionMismatch : .assertionMalformed
            expectEqual(refusal(verdict), expected, "\(text.prefix(30))")
        }
        let request = try trial.request()
        let signing = Trial.sessionRule().signing
        let last = try #require(session.proof(of: request, signing: signing, as: .max))
        expectEqual(last.sequence, "9007199254740991")
        try expectEqual(trial.judge(Wire(request, last), Trial.sessionRule()).outcome, .pass)
    }

    @Test func `a session's fields come once each, all three, and without those of an assertion`()
        throws
    {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        for name in ["App-Attest-Session", "App-Attest-Sequence", "App-Attest-Signature"] {
            let without = try trial.send(trial.request(), by: &session) { $0.remove(name) }
            expectEqual(refusal(without), .assertionMalformed, "without \(name)")
            let twice = try trial.send(trial.request(), by: &session) {
                $0.fields.append((name, $0.value(name) ?? ""))
            }
            expectEqual(refusal(twice), .assertionMalformed, "\(name) twice")
        }
        for name in ["App-Attest-Assertion", "App-Attest-Challenge"] {
            let beside = try trial.send(trial.request(), by: &session) {
                $0.fields.append((name, key.keyID.base64))
            }
            expectEqual(refusal(beside), .assertionMalformed, "\(name) beside")
        }
        let request = try trial.request()
        let assertion = key.proof(of: request, signing: Trial.sessionRule().signing)
        let both = try trial.send(request, by: &session) { $0.fields += assertion.fields }
        expectEqual(refusal(both), .assertionMalformed)
    }

    @Test func `a session's request may name its key, once and no other`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let other = trial.enrolledKey()
        var session = try trial.openSession(&key)
        let (own, field) = (key.keyID, "App-Attest-Key-Id")
        let named = try trial.send(trial.request(), by: &session) { $0.set(field, own.base64) }
        expectEqual(named.outcome, .pass)
        for stranger in [other.keyID, Trial.device().makeKey().keyID] {
            let verdict = try trial.send(trial.request(), by: &session) {
                $0.set(field, stranger.base64)
            }
            expectEqual(refusal(verdict), .sessionMismatch)
            expectEqual(verdict.signer, nil)
        }
        let twice = try trial.send(trial.request(), by: &session) {
            $0.fields += [(field, own.base64), (field, own.base64)]
        }
        expectEqual(refusal(twice), .assertionMalformed)
        for text in ["", "AAAA", "%%%%", String(repeating: "A", count: 9_000)] {
            let verdict = try trial.send(trial.request(), by: &session) { $0.set(field, text) }
            expectEqual(refusal(verdict), .assertionMalformed, "\(text.prefix(30))")
        }
        // What is not known is that first, whoever it names.
        var unknown = SoftwareSession(id: String(repeating: "A", count: 44), secret: session.secret)
        let verdict = try trial.send(trial.request(), by: &unknown) { $0.set(field, own.base64) }
        expectEqual(refusal(verdict), .sessionUnknown)
        expectEqual(verdict.sessionAbsence, .foreign)
        expectEqual(verdict.keyID, own)
    }

    @Test func `beside a session the key id has its own name, whatever names the rule has`() throws
    {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let other = trial.enrolledKey()
        var session = try trial.openSession(&key)
        let rule = Trial.sessionRule { $0.fields.keyID = Array("x-key".utf8) }
        func send(_ name: String, _ keyID: KeyID) throws -> Verdict {
            try trial.send(trial.request(), by: &session, rule) { $0.set(name, keyID.base64) }
        }
        try expectEqual(send("App-Attest-Key-Id", key.keyID).outcome, .pass)
        expectEqual(refusal(try send("App-Attest-Key-Id", other.keyID)), .sessionMismatch)
        expectEqual(refusal(try send("X-Key", key.keyID)), .assertionMalformed)
    }

    @Test func `an evicted session is told from one of another gateway`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var first = try trial.openSession(&key)
        for _ in 0..<SessionTable.perKeyMax { _ = try trial.openSession(&key) }
        let evicted = try trial.send(trial.request(), by: &first)
        expectEqual(refusal(evicted), .sessionUnknown)
        expectEqual(evicted.sessionAbsence, .evicted)
        let opened = SessionTable().open(
            key.keyID,
            try #require(try trial.ask(&key).grant).evidence,
            now: trial.now.seconds
        )
        var foreign = SoftwareSession(
            id: String(decoding: opened.id, as: UTF8.self),
            secret: opened.secret.array
        )
        let elsewhere = try trial.send(trial.request(), by: &foreign)
        expectEqual(refusal(elsewhere), .sessionUnknown)
        expectEqual(elsewhere.sessionAbsence, .foreign)
    }

    @Test func `ids and codes of any length and alphabet are refused`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        for text in ["", "A", session.id + "=", String(repeating: "A", count: 12_000), "%%%%"] {
            let verdict = try trial.send(trial.request(), by: &session) {
                $0.set("App-Attest-Session", text)
            }
            expectEqual(refusal(verdict), .sessionUnknown, "\(text.prefix(30))")
        }
        for text in [
            "", "AAAA", String(repeating: "A", count: 12_000), String(repeating: "%", count: 44),
        ] {
            let verdict = try trial.send(trial.request(), by: &session) {
                $0.set("App-Attest-Signature", text)
            }
            expectEqual(refusal(verdict), .assertionMalformed, "\(text.prefix(30))")
        }
    }

    @Test func `a rule that accepts assertions alone says so, whatever the session is`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        expectEqual(
            refusal(try trial.send(trial.request(), by: &session, Trial.rule())),
            .sessionRefused
        )
        try expectEqual(trial.send(trial.request(), by: &session).outcome, .pass)
        // An assertion is still good where sessions are.
        try expectEqual(trial.send(trial.request(), by: &key, Trial.sessionRule()).outcome, .pass)
    }

    @Test func `an expired session is expired, one of before a restart is unknown`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        trial.now = Trial.start.advanced(bySeconds: 599)
        try expectEqual(trial.send(trial.request(), by: &session).outcome, .pass)
        trial.now = Trial.start.advanced(bySeconds: 600)
        expectEqual(refusal(try trial.send(trial.request(), by: &session)), .sessionExpired)
        trial.now = Trial.start
        trial.judge = Judge(
            apps: trial.policies,
            decider: Decider(
                keys: trial.keys,
                challenges: trial.issuer,
                sessions: SessionTable()
            )
        )
        expectEqual(refusal(try trial.send(trial.request(), by: &session)), .sessionUnknown)
    }

    @Test func `a session that expires while its content arrives is expired`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        let rule = Trial.sessionRule {
            $0.body = .held(limit: .mebibytes(1), memory: .kibibytes(1))
        }
        let request = try trial.request()
        for stated in [true, false] {
            trial.now = Trial.start
            let next = session.proof(of: request, signing: rule.signing)
            let proof = try #require(next)
            var wire = Wire(request, proof)
            if !stated { wire.remove("Content-Digest") }
            guard case .hold(let held) = try trial.open(wire, rule) else {
                Issue.record("nothing to hold")
                return
            }
            #expect(!held.hasCostSignature)
            trial.now = Trial.start.advanced(bySeconds: 600)
            let verdict = trial.judge.close(
                held,
                content: Trial.Content(request.content),
                rule: rule,
                in: trial.circumstances
            )
            expectEqual(refusal(verdict), .sessionExpired)
        }
    }

    @Test func `a revoked key ends its sessions at once`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        try expectEqual(trial.send(trial.request(), by: &session).outcome, .pass)
        #expect(trial.journal.revoke(key.keyID, at: trial.now.seconds))
        expectEqual(refusal(try trial.send(trial.request(), by: &session)), .keyRevoked)
    }

    @Test func `a key that is revoked while content arrives has no session, stated digest or not`()
        throws
    {
        for stated in [true, false] {
            var trial = try Trial()
            var key = trial.enrolledKey()
            let session = try trial.openSession(&key)
            let rule = Trial.sessionRule {
                $0.body = .held(limit: .mebibytes(1), memory: .kibibytes(1))
            }
            let request = try trial.request()
            let proof = try #require(session.proof(of: request, signing: rule.signing, as: .first))
            var wire = Wire(request, proof)
            if !stated { wire.remove("Content-Digest") }
            guard case .hold(let held) = try trial.open(wire, rule) else {
                Issue.record("nothing to hold")
                return
            }
            #expect(trial.journal.revoke(key.keyID, at: trial.now.seconds))
            expectEqual(refusal(trial.close(held, wire, rule)), .keyRevoked)
        }
    }

    @Test func `a session is good for no rule that does not admit the app of its key`() throws {
        let policies = [Trial.policy(), Trial.policy(Trial.otherAppID)]
        var trial = try Trial(policies)
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        let other = Trial.sessionRule { $0.apps = .named([Trial.otherAppID]) }
        let own = Trial.sessionRule { $0.apps = .named([Trial.appID]) }
        expectEqual(refusal(try trial.send(trial.request(), by: &session, other)), .appMismatch)
        try expectEqual(trial.send(trial.request(), by: &session, own).outcome, .pass)
        // Nor after a reload without the app.
        trial.judge = Judge(
            apps: [policies[1]],
            decider: Decider(
                keys: trial.keys,
                challenges: trial.issuer,
                sessions: trial.sessions
            )
        )
        expectEqual(refusal(try trial.send(trial.request(), by: &session, own)), .appMismatch)
    }

    @Test(arguments: [DependencyErrorRule.refuse, .forward])
    func `while revocations can't be read, on_error decides about a good request and no other`(
        onError: DependencyErrorRule
    ) throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let session = try trial.openSession(&key)
        try trial.breakStore()
        let rule = Trial.sessionRule { $0.onError = onError }
        let request = try trial.request()
        let proof = try #require(session.proof(of: request, signing: rule.signing, as: .first))
        var forged = proof
        forged.signature = String(repeating: "A", count: 43) + "="
        expectEqual(refusal(try trial.judge(Wire(request, forged), rule)), .sessionMismatch)
        let good = try trial.judge(Wire(request, proof), rule)
        expectEqual(good.outcome, .failure(.store))
        let isForwarded = Decision(good, rule: rule, isEnforced: true) == .forward
        expectEqual(isForwarded, onError == .forward)
        // A request that was not forwarded has used no number.
        let again = try trial.judge(Wire(request, proof), rule)
        expectEqual((refusal(again) == .sessionReplayed), isForwarded)
    }

    @Test(arguments: [DependencyErrorRule.refuse, .forward])
    func `no content is held of a session whose key may have been revoked, where that refuses`(
        onError: DependencyErrorRule
    ) throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let session = try trial.openSession(&key)
        try trial.breakStore()
        let rule = Trial.sessionRule {
            $0.body = .held(limit: .mebibytes(1), memory: .kibibytes(1))
            $0.onError = onError
        }
        let request = try trial.request()
        let proof = try #require(session.proof(of: request, signing: rule.signing, as: .first))
        switch try trial.open(Wire(request, proof), rule) {
        case .judged(let verdict):
            expectEqual(onError, .refuse)
            expectEqual(verdict.outcome, .failure(.store))
        case .hold: expectEqual(onError, .forward)
        }
    }

    @Test func `a client that waits to be asked is told beforehand that its number is used`() throws
    {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let session = try trial.openSession(&key)
        let rule = Trial.sessionRule {
            $0.body = .held(limit: .mebibytes(1), memory: .kibibytes(1))
        }
        let request = try trial.request()
        let proof = try #require(session.proof(of: request, signing: rule.signing, as: .first))
        try expectEqual(trial.judge(Wire(request, proof), rule).outcome, .pass)
        var wire = Wire(request, proof)
        wire.remove("Content-Digest")
        // Its content comes anyway: all of it is judged, and the code before the number.
        guard case .hold = try trial.open(wire, rule) else {
            Issue.record("not held")
            return
        }
        wire.fields.append(("Expect", "100-continue"))
        guard case .judged(let verdict) = try trial.open(wire, rule) else {
            Issue.record("held")
            return
        }
        expectEqual(refusal(verdict), .sessionReplayed)
    }

    @Test func `a build that the app no longer admits has no session either`() throws {
        var trial = try Trial()
        let device = Trial.device(shape: .iOS27(category: .appStore, bundleVersion: "7"))
        var key = trial.enrolledKey(device)
        var session = try trial.openSession(&key)
        try expectEqual(trial.send(trial.request(), by: &session).outcome, .pass)
        let stricter = Trial.policy { policy in
            policy.builds = BuildPolicy(
                categories: nil,
                acceptsAbsentCategory: true,
                bundleVersions: ["no such version"],
                acceptsAbsentBundleVersion: false
            )
        }
        trial.judge = Judge(
            apps: [stricter],
            decider: Decider(
                keys: trial.keys,
                challenges: trial.issuer,
                sessions: trial.sessions
            )
        )
        expectEqual(refusal(try trial.send(trial.request(), by: &session)), .versionRefused)
    }

    @Test func `an address that is over its limit of failures is served by session`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var session = try trial.openSession(&key)
        let rule = Trial.sessionRule()
        let request = try trial.request()
        let next = session.proof(of: request, signing: rule.signing)
        let proof = try #require(next)
        let opening = try trial.open(
            Wire(request, proof),
            rule,
            mayVerify: false,
            content: request.content
        )
        guard case .judged(let verdict) = opening else {
            Issue.record("not judged")
            return
        }
        expectEqual(verdict.outcome, .pass)
    }

    @Test func `requests to open a session need an assertion with a challenge`() throws {
        var trial = try Trial()
        var key = trial.enrolledKey()
        try expectEqual(trial.ask(&key).grant?.keyID, key.keyID)
        var session = try trial.openSession(&key)
        let rule = trial.openingRule
        let target = "/.well-known/app-attest/sessions"
        let bySession = try trial.send(
            trial.request("POST", target, content: ""),
            by: &session,
            rule
        )
        expectEqual(refusal(bySession), .sessionRefused)
        #expect(bySession.grant == nil)
        let bare = SoftwareKey.Request(method: "POST", target: target)
        let withoutChallenge = try trial.send(bare, by: &key, rule)
        expectEqual(refusal(withoutChallenge), .challengeMissing)
        let elsewhere = try trial.send(
            trial.request("POST", "/v1/orders", content: ""),
            by: &key,
            rule
        ) {
            $0.target = target
        }
        expectEqual(refusal(elsewhere), .signatureMismatch)
    }
}
