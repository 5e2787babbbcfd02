import Expectations
import Foundation
import RequestBinding
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite struct FieldTests {
    private func lesson(_ sign: String, counter: String? = nil) -> RouteLesson? {
        var parameters = ["sign": sign]
        parameters["counter"] = counter
        return RouteLesson(parameters)
    }

    @Test func `the gateway's challenge is found among others`() throws {
        let text = """
            Basic realm="a, AppAttest error=\\"no\\"", Negotiate YWJj==, \
            AppAttest error="key-unknown", next="enrol", challenge="AQK-_", \
            sign="method target body challenge", headers="idempotency-key x", \
            accept="assertion session", Digest realm="z"
            """
        let field = try #require(AuthenticateField(text))
        expectEqual(field.refusal, GatewayRefusal(reason: "key-unknown", next: .enrol))
        expectEqual(field.challenge, "AQK-_")
        expectEqual(field.lesson?.form, .lines(.all, headers: ["idempotency-key", "x"]))
        expectEqual(field.lesson?.accepts, [.assertion, .session])
    }

    @Test(arguments: [
        "", "Basic realm=\"AppAttest\"", "AppAttest", "AppAttestation error=\"x\"",
        "Basic AppAttest error=x", "Basic realm=x AppAttest error=x",
        "Bearer error=\"key-unknown\", next=\"enrol\"", "AppAttest next=\"enrol\"", ",,,", "\"",
        "AppAttest error=\"x",
    ])
    func `a field without it is none of the gateway's`(text: String) {
        expectEqual(AuthenticateField(text), nil)
    }

    @Test func `a field of an older gateway is understood`() throws {
        let field = try #require(
            AuthenticateField("appattest error=\"assertion-missing\",challenge=\"c\"")
        )
        expectEqual(field.refusal.next, .signAgain)
        expectEqual(field.lesson, nil)
        expectEqual(AuthenticateField("AppAttest error=x")?.refusal.next, GatewayRefusal.Next.none)
    }

    @Test(arguments: [
        ("content", SigningForm.content), ("challenge-text", .challenge),
        ("challenge", .lines(.challenge, headers: [])),
        ("method body", .lines([.method, .body], headers: [])),
    ])
    func `what is signed is read`(sign: String, form: SigningForm) throws {
        let lesson = try #require(self.lesson(sign))
        expectEqual(lesson.form, form)
    }

    @Test(arguments: [
        ("\"token\"", true), ("token", true), ("\"a token\"", true), ("\"a\"", false),
    ])
    func `a route says that it wants a device token`(value: String, isWanted: Bool) throws {
        let text = "AppAttest error=\"x\", sign=\"method\", device=\(value)"
        let lesson = try #require(AuthenticateField(text)?.lesson)
        expectEqual(lesson.needsDeviceToken, isWanted)
        let next = try #require(
            NextField("enrol;sign=\"method\";device=\(value);counter=8")?.lesson
        )
        expectEqual(next.needsDeviceToken, isWanted)
        // What is said counts, whatever the plan says.
        let known = SigningRequirement(needsDeviceToken: !isWanted)
        expectEqual(lesson.requirement(over: known)?.needsDeviceToken, isWanted)
    }

    @Test func `a part that nobody knows teaches nothing`() {
        expectEqual(lesson("method weather"), nil)
        expectEqual(RouteLesson(["headers": "a"]), nil)
    }

    @Test func `advice beside an answer is read`() throws {
        let text = "sign-again;sign=\"method target\"; headers=\"a\";accept=\"assertion\""
        let field = try #require(NextField(text))
        expectEqual(field.next, .signAgain)
        expectEqual(field.lesson?.form, .lines([.method, .target], headers: ["a"]))
        expectEqual(NextField("enrol")?.next, .enrol)
        expectEqual(NextField("enrol")?.lesson, nil)
        expectEqual(NextField("enrol;key=\"a/b+c=\"")?.keyID, "a/b+c=")
        let ended = NextField("sign-again;sign=\"method\";error=\"session-unknown\"")
        expectEqual(ended?.reason, "session-unknown")
        expectEqual(field.keyID, nil)
        expectEqual(NextField("dance"), nil)
        expectEqual(NextField(""), nil)
    }

    @Test func `a lesson changes what it says, and nothing else`() throws {
        var known = SigningRequirement(challenge: .optional, counter: .strict)
        known.fields = ProofFieldNames(keyID: "X-Key")
        let lesson = try #require(
            RouteLesson([
                "sign": "method challenge", "headers": "a", "accept": "session", "counter": "8",
            ])
        )
        let learned = try #require(lesson.requirement(over: known))
        expectEqual(learned.form, .lines([.method, .challenge], headers: ["a"]))
        expectEqual(learned.challenge, .optional)
        expectEqual(learned.counter, .window(8))
        expectEqual(learned.accepts, [.session])
        expectEqual(learned.fields.keyID, "X-Key")
        let bare = try #require(self.lesson("method"))
        expectEqual(bare.requirement(over: known)?.challenge, SigningRequirement.Challenge.none)
        expectEqual(bare.requirement(over: nil)?.accepts, [.assertion])
    }

    @Test(arguments: ["method challenge", "challenge-text"])
    func `a pointer into the content ends with the form that signs the content`(
        sign: String
    ) throws {
        var known = SigningRequirement(form: .content)
        known.challengePointer = "/auth/challenge"
        let same = try #require(lesson("content"))
        expectEqual(same.requirement(over: known)?.challengePointer, "/auth/challenge")
        let other = try #require(lesson(sign)?.requirement(over: known))
        expectEqual(other.challengePointer, nil)
        #expect(other.needsChallengeField)
    }

    @Test func `renamed fields and a challenge's place in the content are read where they stand`()
        throws
    {
        let more = #"fields="key_id=x-key assertion=x-proof new=x bad=a(b", "#
        let pointer = #"challenge_pointer="/a%20b/c~1d/%C3%A9%22""#
        let text = #"AppAttest error="x", sign="content", "# + more + pointer
        let lesson = try #require(AuthenticateField(text)?.lesson)
        let learned = try #require(lesson.requirement(over: nil))
        expectEqual(learned.fields, ProofFieldNames(keyID: "x-key", assertion: "x-proof"))
        expectEqual(learned.challengePointer, #"/a b/c~1d/é""#)
        let item = #"sign-again;sign="content";"# + more.replacing(", ", with: ";") + pointer
        expectEqual(NextField(item)?.lesson?.requirement(over: nil), learned)
        // Of a renamed field that is named no longer, the usual name counts.
        let later = try #require(
            RouteLesson(["sign": "target", "fields": "key_id=k"])
        )
        let after = later.requirement(over: learned)
        expectEqual(after?.fields, ProofFieldNames(keyID: "k"))
        expectEqual(after?.challengePointer, nil)
    }

    @Test func `a rule's tokens keep their names, and to get one is a step of its own`() {
        let field = AuthenticateField(
            #"AppAttest error="proof-missing", next="get-token", tokens="appcheck captcha""#
        )
        let expected = GatewayRefusal(
            reason: "proof-missing",
            next: .getToken,
            tokens: ["appcheck", "captcha"]
        )
        expectEqual(field?.refusal, expected)
        expectEqual(ErrorField("proof-missing;next=get-token")?.refusal.next, .getToken)
    }

    @Test(arguments: [("plain\tvalue", true), ("ké", false), ("a\u{7F}", false)])
    func `a signed field has printable ASCII, or the request is not signed`(
        value: String,
        isSigned: Bool
    ) async throws {
        let form = SigningForm.lines([.method, .challenge], headers: ["x-a"])
        let bench = try Bench { $0.defaultRequirement = SigningRequirement(form: form) }
        await bench.gateway.change { $0.requirement.form = form }
        var request = try Bench.request("/a")
        request.setValue(value, forHTTPHeaderField: "X-A")
        let answer = try await bench.session.data(for: request).1
        expectEqual(answer.proof.keyID != nil, isSigned)
        if !isSigned { expectEqual(answer.proof, .none(.requestUnfit)) }
    }

    @Test(arguments: [
        (nil as String?, SigningRequirement.Counter.strict), ("64", .window(64)), ("1", .window(1)),
        ("strict", .strict), ("0", .strict), ("65", .strict), ("-1", .strict), ("6x", .strict),
        ("99999999999999999999", .strict),
    ])
    func `a route whose answer names no window is sent one request at a time`(
        text: String?,
        counter: SigningRequirement.Counter
    ) throws {
        try expectEqual(#require(lesson("method", counter: text)).counter, counter)
        let quoted = "AppAttest error=\"x\", sign=\"method\", counter=\"\(text ?? "")\""
        expectEqual(AuthenticateField(quoted)?.lesson?.counter, counter)
        if let text {
            let next = NextField("sign-again;sign=\"method\";counter=\(text)")
            expectEqual(next?.lesson?.counter, counter)
        }
        // As a rule that says no counter.
        expectEqual(SigningRequirement().counter, .window(64))
    }

    @Test(arguments: ["dance", "dance;sign=\"method\"", "", "Enrol;sign=\"method\""])
    func `advice with a next step that is not known is passed over`(text: String) {
        expectEqual(NextField(text), nil)
    }

    @Test(arguments: [
        ("signature-mismatch;next=none", "signature-mismatch", GatewayRefusal.Next.none),
        ("key-unknown; next=enrol;more", "key-unknown", .enrol),
        ("a;flag;x=:YQ==:;y=\"q;next=enrol\";next=\"sign-again\"", "a", .signAgain),
        ("origin-timeout", "origin-timeout", .none), ("a;next=dance", "a", .none),
    ])
    func `the gateway's mark on its own answers is read`(
        text: String,
        reason: String,
        next: GatewayRefusal.Next
    ) {
        expectEqual(ErrorField(text)?.refusal, GatewayRefusal(reason: reason, next: next))
    }

    @Test(arguments: ["", ";next=enrol", "\"a\"", String(repeating: "a", count: 9000)])
    func `what is no token is not the gateway's mark`(text: String) {
        expectEqual(ErrorField(text), nil)
    }

    @Test(arguments: [
        ("7", 7 as Double?), ("Sun, 06 Nov 1994 08:49:40 GMT", 3),
        ("Sunday, 06-Nov-94 08:49:40 GMT", 3),
        ("Sun Nov  6 08:49:40 1994", 3), ("Sun, 06 Nov 1994 08:49:30 GMT", 0), ("soon", nil),
        ("-1", nil), ("1e3", nil), ("9999999999", nil), ("", nil),
    ])
    func `a wait is read in seconds and as a date, by the clock of the server`(
        text: String,
        seconds: Double?
    ) throws {
        let response = try #require(
            HTTPURLResponse(
                url: Bench.url(FakeGateway.origin),
                statusCode: 503,
                httpVersion: "HTTP/1.1",
                headerFields: ["Retry-After": text, "Date": "Sun, 06 Nov 1994 08:49:37 GMT"]
            )
        )
        expectEqual(RetryAfter.seconds(in: response, now: .distantPast), seconds)
    }
}
