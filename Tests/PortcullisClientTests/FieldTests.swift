import RequestBinding
import Testing

@testable import PortcullisClient

@Suite struct FieldTests {
    @Test func `the gateway's challenge is found among others`() throws {
        let text = """
            Basic realm="a, AppAttest error=\\"no\\"", Negotiate YWJj==, \
            AppAttest error="key-unknown", next="enrol", challenge="AQK-_", \
            sign="method target body challenge", headers="idempotency-key x", \
            accept="assertion session", Digest realm="z"
            """
        let field = try #require(AuthenticateField(text))
        #expect(field.refusal == GatewayRefusal(reason: "key-unknown", next: .enrol))
        #expect(field.challenge == "AQK-_")
        #expect(field.lesson?.form == .lines(.all, headers: ["idempotency-key", "x"]))
        #expect(field.lesson?.accepts == [.assertion, .session])
    }

    @Test(arguments: [
        "", "Basic realm=\"AppAttest\"", "AppAttest", "AppAttestation error=\"x\"",
        "Basic AppAttest error=x", "Basic realm=x AppAttest error=x",
        "Bearer error=\"key-unknown\", next=\"enrol\"", "AppAttest next=\"enrol\"", ",,,", "\"",
        "AppAttest error=\"x",
    ])
    func `a field without it is none of the gateway's`(text: String) {
        #expect(AuthenticateField(text) == nil)
    }

    @Test func `a field of an older gateway is understood`() throws {
        let field = try #require(
            AuthenticateField("appattest error=\"assertion-missing\",challenge=\"c\"")
        )
        #expect(field.refusal.next == .signAgain)
        #expect(field.lesson == nil)
        #expect(AuthenticateField("AppAttest error=x")?.refusal.next == GatewayRefusal.Next.none)
    }

    @Test(arguments: [
        ("content", SigningForm.content), ("challenge-text", .challenge),
        ("challenge", .lines(.challenge, headers: [])),
        ("method body", .lines([.method, .body], headers: [])),
    ])
    func `what is signed is read`(sign: String, form: SigningForm) throws {
        let lesson = try #require(RouteLesson(sign: sign, headers: nil, accept: nil))
        #expect(lesson.form == form)
    }

    @Test func `a part that nobody knows teaches nothing`() {
        #expect(RouteLesson(sign: "method weather", headers: nil, accept: nil) == nil)
        #expect(RouteLesson(sign: nil, headers: "a", accept: nil) == nil)
    }

    @Test func `advice beside an answer is read`() throws {
        let text = "sign-again;sign=\"method target\"; headers=\"a\";accept=\"assertion\""
        let field = try #require(NextField(text))
        #expect(field.next == .signAgain)
        #expect(field.lesson?.form == .lines([.method, .target], headers: ["a"]))
        #expect(NextField("enrol")?.next == .enrol)
        #expect(NextField("enrol")?.lesson == nil)
        #expect(NextField("dance") == nil)
        #expect(NextField("") == nil)
    }

    @Test func `a lesson changes what it says, and nothing else`() throws {
        let known = SigningRequirement(
            challenge: .optional,
            counter: .strict,
            fields: ProofFields(keyID: "X-Key")
        )
        let lesson = try #require(
            RouteLesson(sign: "method challenge", headers: "a", accept: "session")
        )
        let learned = try #require(lesson.requirement(over: known))
        #expect(learned.form == .lines([.method, .challenge], headers: ["a"]))
        #expect(learned.challenge == .optional)
        #expect(learned.counter == .strict)
        #expect(learned.accepts == [.session])
        #expect(learned.fields.keyID == "X-Key")
        let bare = try #require(RouteLesson(sign: "method", headers: nil, accept: nil))
        #expect(bare.requirement(over: known)?.challenge == SigningRequirement.Challenge.none)
        #expect(bare.requirement(over: nil)?.accepts == [.assertion])
    }
}
