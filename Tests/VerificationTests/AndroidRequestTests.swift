import AppAttest
import Cryptography
import Encodings
import Expectations
import KeyStore
import RequestBinding
import Rules
import SoftwareAuthenticator
import Testing
import Verification

/// Requests that an Android phone's key has signed, and what can be tried with them.
@Suite struct AndroidRequestTests {
    @Test func `one rule admits the keys of both apps`() throws {
        var trial = try Trial.ofBothApps()
        var (phone, iPhone) = (trial.enrolledPhoneKey(), trial.enrolledKey())
        let ofPhone = try trial.send(try trial.request(), by: &phone)
        #expect(ofPhone.outcome == .pass && ofPhone.appID == Trial.package)
        #expect(ofPhone.level == .complete && ofPhone.proof == .assertion)
        try expectEqual(trial.counters(phone).highest, phone.counter)
        let other = try trial.send(try trial.request(), by: &iPhone)
        #expect(other.outcome == .pass && other.appID == Trial.appID)
    }

    @Test(arguments: [SigningForm.content, .challenge, .lines(.all, headers: [])])
    func `a phone signs each form`(form: SigningForm) throws {
        var trial = try Trial.ofBothApps()
        var phone = trial.enrolledPhoneKey()
        let rule = Trial.rule { demands in
            demands.signing = form
            demands.body = .held(limit: .mebibytes(1), memory: .kibibytes(64))
        }
        try expectEqual(trial.send(try trial.request(), by: &phone, rule).outcome, .pass)
        let changed = try trial.send(try trial.request(), by: &phone, rule) { wire in
            wire.content += Array(" ".utf8)
        }
        #expect(changed.outcome != .pass || form == .challenge)
    }

    @Test(arguments: AssertionDamage.allCases)
    func `a damaged signature is refused for its damage`(damage: AssertionDamage) throws {
        var trial = try Trial.ofBothApps()
        var phone = trial.enrolledPhoneKey()
        try expectEqual(trial.send(try trial.request(), by: &phone).outcome, .pass)
        let verdict = try trial.send(try trial.request(), by: &phone, damage: damage)
        if let reason = damage.phoneRefusal {
            expectEqual(verdict.refusal?.rawValue, reason.rawValue)
        } else {
            expectEqual(verdict.outcome, .pass)
        }
    }

    /// What `edit` does with the assertion of a good request.
    private func refusal(
        _ edit: @escaping (String) -> String
    ) throws -> (Refusal?, Verdict.ProofLevel) {
        var trial = try Trial.ofBothApps()
        var phone = trial.enrolledPhoneKey()
        let verdict = try trial.send(try trial.request(), by: &phone) { wire in
            wire.set("App-Attest-Assertion", edit(wire.value("App-Attest-Assertion") ?? ""))
        }
        return (verdict.refusal, verdict.level)
    }

    @Test func `nothing of the text can be changed on its way`() throws {
        try expectEqual(refusal { $0 }.0, nil)
        let mismatch = [
            { (text: String) in text.replacing("v1.1.", with: "v1.2.") },
            { text in text.replacing("v1.1.", with: "v1.0.") },
            { text in text.replacing("v1.1.", with: "v1.4294967295.") },
        ]
        for edit in mismatch { try expectEqual(refusal(edit).0, .signatureMismatch) }
        let malformed = [
            { (text: String) in text + "=" },
            { text in text.replacing("v1.1.", with: "v1.01.") },
            { text in text.replacing("v1.1.", with: "v1..") },
            { text in text.replacing("v1.", with: "v2.") },
            { text in text.replacing("v1.", with: "V1.") },
            { text in text + "." }, { _ in "v1." }, { _ in "v1.1." },
        ]
        for edit in malformed {
            let (reason, level) = try refusal(edit)
            #expect(reason == .assertionMalformed && level == .claimed)
        }
        // Bytes after the signature are no signature.
        let longer = try refusal { text in
            let parts = text.split(separator: ".")
            let signature = (Base64.decode(parts[2]) ?? []) + [0]
            return "v1.1." + String(decoding: Base64.encodeURL(signature), as: UTF8.self)
        }
        #expect(longer.0 == .signatureMismatch && longer.1 == .claimed)
    }

    @Test func `a signature whose s is above half the order is no second one`() throws {
        var trial = try Trial.ofBothApps()
        var phone = trial.enrolledPhoneKey()
        let request = try trial.request()
        try expectEqual(trial.send(request, by: &phone, damage: .lowS).outcome, .pass)
        phone.counter = SignCounter(rawValue: phone.counter.rawValue - 1)
        let twin = try trial.send(try trial.request(), by: &phone, damage: .highS)
        expectEqual(twin.refusal, .counterReplayed)
    }

    /// A key that is on an iPhone and on a phone, which can't be; so only its form differs.
    @Test func `neither platform's form is accepted for the other's key`() throws {
        var trial = try Trial.ofBothApps()
        let (iPhone, phone) = (trial.enrolledKey(), trial.enrolledPhoneKey())
        for (signer, named) in [(iPhone, phone), (phone, iPhone)] {
            var signer = signer
            let verdict = try trial.send(try trial.request(), by: &signer) { wire in
                wire.set("App-Attest-Key-Id", named.keyID.base64)
            }
            #expect(verdict.refusal == .assertionMalformed && verdict.level == .claimed)
            expectEqual(verdict.keyID, named.keyID)
        }
        expectEqual(trial.judge.verifications, 0)
    }

    @Test func `content is not held for the other platform's form`() throws {
        var trial = try Trial.ofBothApps()
        var (iPhone, phone) = (trial.enrolledKey(), trial.enrolledPhoneKey())
        let rule = Trial.rule { $0.body = .held(limit: .mebibytes(1), memory: .kibibytes(64)) }
        let request = try trial.request()
        let proof = iPhone.proof(of: request, signing: rule.signing)
        var wire = Wire(request, proof)
        wire.set("App-Attest-Key-Id", phone.keyID.base64)
        wire.remove("Content-Digest")
        guard case .judged(let verdict) = try trial.open(wire, rule) else {
            Issue.record("held")
            return
        }
        expectEqual(verdict.refusal, .assertionMalformed)
        try expectEqual(trial.send(request, by: &phone, rule).outcome, .pass)
    }

    /// The operator has given an Android app the id that an app of Apple's had.
    @Test func `an app has no keys of another platform`() throws {
        var trial = try Trial([Trial.androidPolicy(Trial.appID)])
        var iPhone = trial.enrolledKey()
        try expectEqual(trial.send(try trial.request(), by: &iPhone).refusal, .appMismatch)
    }

    @Test func `counters are used as those of other keys`() throws {
        var trial = try Trial.ofBothApps()
        var phone = trial.enrolledPhoneKey()
        let strict = Trial.rule { $0.counter = .strict }
        let window = Trial.rule { $0.counter = .window(4) }
        func send(_ counter: UInt32, _ rule: Rule) throws -> Refusal? {
            phone.counter = SignCounter(rawValue: counter - 1)
            return try trial.send(try trial.request(), by: &phone, rule).refusal
        }
        try expectEqual(send(10, strict), nil)
        try expectEqual(send(9, strict), .counterReplayed)
        try expectEqual(send(10, window), .counterReplayed)
        try expectEqual(send(14, window), nil)
        try expectEqual(send(12, window), nil)
        try expectEqual(send(12, window), .counterReplayed)
        try expectEqual(send(9, window), .counterReplayed)
        try expectEqual(send(.max, window), nil)
    }

    @Test func `a key that is too old is refused`() throws {
        var trial = try Trial.ofBothApps { $0.keyDaysMax = 90 }
        var (old, new) = (trial.enrolledPhoneKey(daysAgo: 91), trial.enrolledPhoneKey(daysAgo: 90))
        let verdict = try trial.send(try trial.request(), by: &old)
        #expect(verdict.refusal == .keyExpired && verdict.level == .signed)
        try expectEqual(trial.send(try trial.request(), by: &new).outcome, .pass)
        trial.now = trial.now.advanced(bySeconds: 86_400)
        try expectEqual(trial.send(try trial.request(), by: &new).refusal, .keyExpired)
        try expectEqual(trial.ask(&new).refusal, .keyExpired)
        var iPhone = trial.enrolledKey()
        try expectEqual(trial.send(try trial.request(), by: &iPhone).outcome, .pass)
    }

    @Test func `a session is opened by a phone's key`() throws {
        var trial = try Trial.ofBothApps { $0.keyDaysMax = 90 }
        var phone = trial.enrolledPhoneKey(daysAgo: 90)
        var session = try trial.openSession(&phone)
        try expectEqual(trial.send(try trial.request(), by: &session).outcome, .pass)
    }

    @Test func `risk is the number of certificates that the phone was given`() throws {
        var trial = try Trial.ofBothApps()
        let rule = Trial.rule { demands in
            var risk = RiskRule(max: 32, salt: "a")
            risk.action = .refuse
            demands.risk = risk
        }
        var (usual, many) = (trial.enrolledPhoneKey(issued: 32), trial.enrolledPhoneKey(issued: 64))
        var unsaid = trial.enrolledPhoneKey()
        let verdict = try trial.send(try trial.request(), by: &usual, rule)
        #expect(verdict.outcome == .pass && verdict.risk?.metric == 32)
        try expectEqual(trial.send(try trial.request(), by: &many, rule).refusal, .riskExceeded)
        try expectEqual(trial.send(try trial.request(), by: &unsaid, rule).outcome, .pass)
    }
}
