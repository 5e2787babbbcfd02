import Expectations
import HTTPWire
import OutboundCalls
import Testing

@testable import Parties

/// Transcripts of the calls: what happens, and what is to be done.
@Suite struct SiteverifyCallsTests {
    private typealias Queue = CallQueue<SiteverifyCalls>

    private static func settings(
        _ name: String = "human",
        _ service: SiteverifySettings.Service = .recaptcha,
        _ change: (inout SiteverifySettings) -> Void = { _ in }
    ) -> SiteverifySettings {
        var settings = SiteverifySettings(
            name: name,
            service: service,
            url: "https://\(name).test/verify",
            secret: "a+b&c=d"
        )
        change(&settings)
        return settings
    }

    private static func call(_ proof: String = "human", _ token: String = "t.1") -> SiteverifyCall {
        SiteverifyCall(
            proof: proof,
            token: Array(token.utf8),
            address: IPAddress("2001:db8::7"),
            timeout: .seconds(3)
        )
    }

    private static func at(_ seconds: Double) -> CallMoment {
        CallMoment(tick: UInt64(seconds * 1e9), wall: 1_800_000_000, random: 0)
    }

    private static func requests(_ actions: [Queue.Action]) -> [CallRequest] {
        actions.compactMap { if case .send(_, let request) = $0 { request } else { nil } }
    }

    private static func replies(_ actions: [Queue.Action]) -> [CallReply] {
        actions.compactMap { if case .reply(_, let reply) = $0 { reply } else { nil } }
    }

    private static func written(_ settings: SiteverifySettings, _ token: String = "t.1")
        -> CallRequest
    {
        var party = SiteverifyCalls([settings])
        return party.written(call(settings.name, token), at: 0)
    }

    private static func text(_ request: CallRequest) -> String {
        String(decoding: request.content, as: UTF8.self)
    }

    @Test func `a question is a form, and its values can't leave their places`() {
        let request = Self.written(Self.settings(), "a+/=b")
        expectEqual(request.url, "https://human.test/verify")
        expectEqual(request.contentType, "application/x-www-form-urlencoded")
        expectEqual(request.fields, [])
        expectEqual(Self.text(request), "secret=a%2Bb%26c%3Dd&response=a%2B%2F%3Db")
    }

    @Test func `the client's address is sent only where the settings say so`() {
        let request = Self.written(Self.settings { $0.sendsAddress = true })
        #expect(Self.text(request).hasSuffix("&remoteip=2001%3Adb8%3A%3A7"))
        let other = Self.settings("human", .enterprise) { $0.sendsAddress = true }
        #expect(Self.text(Self.written(other)).contains(#""userIpAddress":"2001:db8::7""#))
    }

    @Test func `hCaptcha gets the key of the site, which it compares`() {
        let request = Self.written(Self.settings("human", .hcaptcha) { $0.siteKey = "k-1" })
        expectEqual(Self.text(request), "secret=a%2Bb%26c%3Dd&response=t.1&sitekey=k-1")
    }

    @Test func `an assessment is JSON, and the key is a field`() {
        let settings = Self.settings("human", .enterprise) { settings in
            settings.siteKey = "k-1"
            settings.action = "order"
        }
        let request = Self.written(settings)
        expectEqual(request.contentType, "application/json")
        expectEqual(request.fields, [CallRequest.Field("X-Goog-Api-Key", "a+b&c=d")])
        expectEqual(
            Self.text(request),
            #"{"event":{"token":"t.1","siteKey":"k-1","expectedAction":"order"}}"#
        )
    }

    @Test(arguments: [
        "t", "0.AbC-_~.x", "P1_eyJ0eXAi.a+/==", "10000000-aaaa-bbbb-cccc-000000000001",
        String(repeating: "a", count: SiteverifyCall.tokenBytesMax),
    ])
    func `what a service makes is a token`(_ text: String) {
        #expect(SiteverifyCall.isToken(Array(text.utf8)))
    }

    @Test(arguments: [
        "", " ", "a b", "a&secret=x", "a%26", "a\r\nX: y", "a\u{0}", "ä", "' OR 1=1", "a\"b", "<a>",
        String(repeating: "a", count: SiteverifyCall.tokenBytesMax + 1),
    ])
    func `what no service makes costs no call`(_ text: String) {
        #expect(!SiteverifyCall.isToken(Array(text.utf8)))
    }

    @Test func `each proof has a line and a breaker of its own`() {
        var calls = Queue([Self.settings("one") { $0.calls.concurrent = 1 }, Self.settings("two")])
        for ticket in 1...5 as ClosedRange<UInt64> {
            _ = calls.handedIn(ticket, Self.call("one"), at: Self.at(0))
            _ = calls.answered(ticket, .failed(.timeout), at: Self.at(0))
        }
        expectEqual(
            Self.replies(calls.handedIn(6, Self.call("one"), at: Self.at(0.5))),
            [.unsent(.breakerOpen)]
        )
        expectEqual(Self.requests(calls.handedIn(7, Self.call("two"), at: Self.at(0.5))).count, 1)
        expectEqual(calls.standing.map(\.host), ["one", "two"])
        expectEqual(calls.standing.map(\.line.condition), [.open, .closed])
    }

    @Test func `a service of another name is asked nothing`() {
        var calls = Queue([Self.settings("one")])
        expectEqual(
            Self.replies(calls.handedIn(1, Self.call("two"), at: Self.at(0))),
            [.unsent(.noHost)]
        )
    }

    @Test func `a refused secret is sent once, since there is no other`() {
        var calls = Queue([Self.settings()])
        _ = calls.handedIn(1, Self.call(), at: Self.at(0))
        let reply = CallReply.answered(status: 401, retryAfter: nil, body: [])
        let actions = calls.answered(1, reply, at: Self.at(1))
        expectEqual(Self.requests(actions), [])
        expectEqual(Self.replies(actions), [reply])
    }

    @Test func `a reload changes the secret of waiting calls, and forgets the lines of old proofs`()
    {
        var calls = Queue([Self.settings { $0.calls.concurrent = 1 }])
        _ = calls.handedIn(1, Self.call(), at: Self.at(0))
        _ = calls.handedIn(2, Self.call(), at: Self.at(0))
        let next = SiteverifySettings(
            name: "human",
            service: .recaptcha,
            url: "https://next.test/",
            secret: "next"
        )
        let begun = Self.requests(calls.replaced([next], at: Self.at(1)))
        expectEqual(begun.map(\.url), ["https://next.test/"])
        expectEqual(begun.map { Self.text($0) }, ["secret=next&response=t.1"])
        let ok = CallReply.answered(status: 200, retryAfter: nil, body: [])
        for ticket in 1...2 as ClosedRange<UInt64> {
            _ = calls.answered(ticket, ok, at: Self.at(1))
        }
        // A request that began before the reload is still answered.
        _ = calls.replaced([], at: Self.at(2))
        expectEqual(Self.requests(calls.handedIn(3, Self.call(), at: Self.at(2))).count, 1)
        _ = calls.answered(3, ok, at: Self.at(2))
        _ = calls.replaced([], at: Self.at(3))
        #expect(calls.standing.isEmpty)
    }

    @Test func `a secret is one line of visible characters`() {
        func secret(_ text: String) -> String? { SiteverifySettings.secret(Array(text.utf8)) }
        expectEqual(secret("6Lc_aCMTAAAA\n"), "6Lc_aCMTAAAA")
        expectEqual(secret(" 6Lc \r\n"), "6Lc")
        for text in ["", "\n", "a b", "a\nb", "ä", "a\u{0}"] { expectEqual(secret(text), nil) }
    }
}
