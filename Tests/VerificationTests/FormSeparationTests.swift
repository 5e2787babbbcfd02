import Cryptography
import Expectations
import RequestBinding
import Rules
import SoftwareAuthenticator
import Testing
import Tokens
import Verification

/// No bytes are accepted as client data by two forms, whatever an attacker writes around them.
@Suite struct FormSeparationTests {
    /// Every form that a rule may have, over two fields.
    private static let forms: [SigningForm] = {
        let headers = [[], ["x-a"], ["x-b"], ["x-a", "x-b"], ["x-b", "x-a"]]
        let lines = (UInt8(1)...15).flatMap { parts in
            headers.map { SigningForm.lines(SignedParts(rawValue: parts), headers: $0) }
        }
        return lines + [.content, .challenge]
    }()

    private static func rule(_ form: SigningForm) -> Rule {
        Trial.rule { demands in
            demands.signing = form
            switch form {
            case .lines(let parts, _):
                demands.challenge = parts.contains(.challenge) ? .required : .none
                demands.body = parts.contains(.body) ? demands.body : .none
            case .content:
                demands.challenge = .none
                demands.body = .held(limit: .mebibytes(1), memory: .kibibytes(1))
            case .challenge: demands.body = .none
            }
        }
    }

    /// The bytes that a client has signed.
    private static func clientData(
        _ request: SoftwareKey.Request,
        _ form: SigningForm
    ) -> [UInt8] {
        SoftwareKey.clientData(of: request, form, SHA256.digest(of: request.content).array)
    }

    /// What somebody who has the assertion sends to a rule of another form.
    private static func forgeries(
        _ wire: Wire,
        _ signed: [UInt8],
        for form: SigningForm
    ) -> [Wire] {
        var forged = wire
        switch form {
        case .content:
            forged.content = signed
            forged.remove("Content-Digest")
            return [forged]
        case .challenge:
            // A field can't hold lines.
            guard !signed.contains(UInt8(ascii: "\n")) else { return [wire] }
            forged.set("App-Attest-Challenge", String(decoding: signed, as: UTF8.self))
            return [forged]
        case .lines:
            // Parts that were not signed, as they are written.
            forged.method = "-"
            forged.set("App-Attest-Challenge", "-")
            var bare = wire
            bare.remove("x-a")
            bare.remove("x-b")
            return [wire, forged, bare]
        }
    }

    @Test func `what is signed in one form passes in no other`() throws {
        var trial = try Trial()
        for form in Self.forms {
            var key = trial.enrolledKey()
            var request = try trial.request()
            request.fields = ["x-a": "1", "x-b": "-"]
            let proof = key.proof(of: request, signing: form)
            let wire = Wire(request, proof)
            let signed = Self.clientData(request, form)
            for other in Self.forms where other != form {
                for forgery in Self.forgeries(wire, signed, for: other) {
                    let verdict = try trial.judge(forgery, Self.rule(other))
                    guard case .refuse(let refusal) = verdict.outcome else {
                        Issue.record("\(form) as \(other): \(verdict.outcome)")
                        continue
                    }
                    if other == .content { expectEqual(refusal, .clientDataAmbiguous) }
                }
            }
            // The assertion was good all the time.
            try expectEqual(trial.judge(wire, Self.rule(form)).outcome, .pass, "\(form)")
        }
    }

    /// What the app is made to sign as its content, and as nothing else.
    @Test func `content that another form could have produced is refused, whoever signed it`()
        throws
    {
        var trial = try Trial()
        var key = trial.enrolledKey()
        var contents = [
            try trial.challenge(), try trial.challenge(.enrolment),
            "AQ" + String(repeating: "A", count: 54), "portcullis-request-v1\n",
            "portcullis-request-v2\nanything",
        ]
        for form in Self.forms.prefix(75) {
            let bytes = Self.clientData(try trial.request(), form)
            contents.append(String(decoding: bytes, as: UTF8.self))
        }
        for content in contents {
            let request = try trial.request(content: content)
            let verdict = try trial.send(request, by: &key, Self.rule(.content))
            expectEqual(verdict.outcome, .refuse(.clientDataAmbiguous), "\(content)")
        }
        let plain = try trial.request(content: "portcullis-request")
        try expectEqual(trial.send(plain, by: &key, Self.rule(.content)).outcome, .pass)
    }

    @Test func `every challenge of ours has the shape that content must not have`() throws {
        for number in 0..<2_000 {
            let issuer = ChallengeIssuer()
            let purpose = ChallengePurpose.allCases[number % 2]
            let text = issuer.issue(purpose, now: Int64(number) << 40)
            expectEqual(ClientDataDomain(of: text.span), .challenge)
        }
    }

    @Test func `a method that reads as one that is not signed is refused where it is signed`()
        throws
    {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let signed = try trial.send(
            try trial.request("-"),
            by: &key,
            Self.rule(.lines(.all, headers: []))
        )
        expectEqual(signed.outcome, .refuse(.clientDataAmbiguous))
        let free = Self.rule(.lines([.target, .body, .challenge], headers: []))
        try expectEqual(trial.send(try trial.request("-"), by: &key, free).outcome, .pass)
    }

    /// Envoy writes `!` for bytes that are no UTF-8, and joins the lines of a field by a comma.
    @Test(arguments: [
        ("/a", "k", true), ("/a!b", "k", false), ("/a?b=!", "k", false), ("/a", "a!b", false),
        ("/a", "a,b", false), ("/a,b", "k", true),
    ])
    func `what may not be the client's own bytes is refused where it is signed`(
        target: String,
        key value: String,
        passes: Bool
    ) throws {
        let field = ("idempotency-key", value)
        let rule = Self.rule(.lines([.method, .target, .challenge], headers: [field.0]))
        for isExact in [true, false] {
            var trial = try Trial()
            var key = trial.enrolledKey()
            var request = try trial.request("GET", target, content: "")
            request.fields = [field.0: field.1]
            let wire = Wire(request, key.proof(of: request, signing: rule.signing))
            guard case .judged(let verdict) = try trial.open(wire, rule, isExact: isExact) else {
                Issue.record("it is judged by its head")
                continue
            }
            let isRefused = verdict.outcome == .refuse(.clientDataAmbiguous)
            expectEqual(isRefused, !isExact && !passes)
            #expect(isRefused || verdict.outcome == .pass)
        }
    }
}
