import Cryptography
import Encodings
import Expectations
import KeyStore
import OutboundCalls
import Telemetry
import Testing
import Verification

@testable import Parties

/// Transcripts: what happens, and what is to be done.
struct AppleCallsTests {
    private typealias Queue = CallQueue<AppleCalls>

    private static let first = AppleCredential(
        teamID: "TEAM123456",
        keyID: "ABC123DEFG",
        key: P256PrivateKey()
    )
    private static let second = AppleCredential(
        teamID: "TEAM654321",
        keyID: "GFED321CBA",
        key: P256PrivateKey()
    )
    private static let hosts: [AppleHost: String] = [
        AppleHost(.receipts, .production): "https://r.test",
        AppleHost(.deviceCheck, .production): "https://d.test",
    ]

    private static func calls(
        _ credentials: [AppleCredential] = [first],
        concurrent: Int = 2,
        queue: Int = 10,
        perSecond: Int = 1_000,
        writesBearer: Bool = false
    ) -> Queue {
        Queue(settings(credentials, concurrent, queue, perSecond, writesBearer))
    }

    private static func settings(
        _ credentials: [AppleCredential] = [first],
        _ concurrent: Int = 2,
        _ queue: Int = 10,
        _ perSecond: Int = 1_000,
        _ writesBearer: Bool = false
    ) -> AppleSettings {
        var settings = AppleSettings()
        settings.credentials = credentials
        settings.authorization = writesBearer ? .bearer : .plain
        settings.hosts = hosts
        (settings.concurrent, settings.queue, settings.perSecond) = (concurrent, queue, perSecond)
        return settings
    }

    private static func at(_ seconds: Double, wall: Int64 = 1_800_000_000) -> CallMoment {
        CallMoment(tick: UInt64(seconds * 1e9), wall: wall + Int64(seconds), random: 0)
    }

    private static func call(
        _ service: AppleService = .receipts,
        _ environment: KeyEnvironment = .production,
        team: String? = nil,
        timeout: Duration = .seconds(10)
    ) -> AppleCall {
        AppleCall(
            service: service,
            environment: environment,
            teamID: team,
            body: [1],
            timeout: timeout
        )
    }

    private static func answer(_ status: Int, retryAfter: Int? = nil) -> CallReply {
        .answered(status: status, retryAfter: retryAfter, body: [])
    }

    /// The calls among the actions.
    private static func requests(_ actions: [Queue.Action]) -> [CallRequest] {
        actions.compactMap { if case .send(_, let request) = $0 { request } else { nil } }
    }

    /// The replies among them.
    private static func replies(_ actions: [Queue.Action]) -> [CallReply] {
        actions.compactMap { if case .reply(_, let reply) = $0 { reply } else { nil } }
    }

    @Test func `one token serves many calls until fifty minutes are over`() {
        var calls = Self.calls(concurrent: 64)
        var authorizations: [String] = []
        for ticket in 1...20 as ClosedRange<UInt64> {
            let actions = calls.handedIn(ticket, Self.call(), at: Self.at(Double(ticket) * 149))
            authorizations += Self.requests(actions).map(\.authorization)
            _ = calls.answered(ticket, Self.answer(200), at: Self.at(Double(ticket) * 149))
        }
        expectEqual(Set(authorizations).count, 1)
        expectEqual(calls.party.tokensSigned, 1)
        let later = Self.requests(calls.handedIn(21, Self.call(), at: Self.at(149 + 3_000)))
        #expect(later.map(\.authorization) != [authorizations[0]])
        expectEqual(calls.party.tokensSigned, 2)
    }

    @Test func `a clock that is set back makes a new token`() {
        var calls = Self.calls()
        _ = calls.handedIn(1, Self.call(), at: Self.at(0))
        _ = calls.handedIn(2, Self.call(), at: Self.at(1, wall: 1_799_000_000))
        expectEqual(calls.party.tokensSigned, 2)
    }

    @Test func `DeviceCheck always has Bearer, receipts only where they are to`() {
        for writesBearer in [false, true] {
            var calls = Self.calls(writesBearer: writesBearer)
            let receipt = Self.requests(calls.handedIn(1, Self.call(), at: Self.at(0)))[0]
            expectEqual(receipt.authorization.hasPrefix("Bearer "), writesBearer)
            expectEqual(receipt.url, "https://r.test/v1/attestationData")
            let query = Self.requests(calls.handedIn(2, Self.call(.queryBits), at: Self.at(0)))[0]
            #expect(query.authorization.hasPrefix("Bearer "))
            expectEqual(query.url, "https://d.test/v1/query_two_bits")
        }
    }

    /// A call that begins with a second left ends by time, and five of them opened the breaker
    /// although the host was well.
    @Test func `a call that has waited for half its time is not made, and blames no host`() {
        var calls = Self.calls(concurrent: 1)
        _ = calls.handedIn(1, Self.call(), at: Self.at(0))
        for ticket in 2...8 as ClosedRange<UInt64> {
            _ = calls.handedIn(ticket, Self.call(), at: Self.at(ticket < 8 ? 0 : 3))
        }
        let actions = calls.answered(1, Self.answer(200), at: Self.at(6))
        let dropped = [CallReply](repeating: .unsent(.queueTimeout), count: 6)
        expectEqual(Self.replies(actions), [Self.answer(200)] + dropped)
        expectEqual(Self.requests(actions).map(\.timeout), [.seconds(7)])
        expectEqual(calls.standing.map(\.line.condition), [.closed])
    }

    @Test func `a 401 makes one new token and one more call, then it is told`() {
        var calls = Self.calls()
        let first = Self.requests(calls.handedIn(1, Self.call(), at: Self.at(0)))[0]
        let again = calls.answered(1, Self.answer(401), at: Self.at(1))
        expectEqual(Self.replies(again), [])
        let second = Self.requests(again)[0]
        #expect(second.authorization != first.authorization)
        expectEqual(second.content, first.content)
        expectEqual(second.timeout, .seconds(9))
        let end = calls.answered(1, Self.answer(401), at: Self.at(2))
        expectEqual(Self.requests(end), [])
        expectEqual(Self.replies(end), [Self.answer(401)])
        expectEqual(calls.party.tokensSigned, 2)
    }

    @Test func `calls that are refused together share the new token`() {
        var calls = Self.calls(concurrent: 8)
        for ticket in 1...8 as ClosedRange<UInt64> {
            _ = calls.handedIn(ticket, Self.call(), at: Self.at(0))
        }
        var authorizations: Set<String> = []
        for ticket in 1...8 as ClosedRange<UInt64> {
            let again = calls.answered(ticket, Self.answer(401), at: Self.at(1))
            authorizations.formUnion(Self.requests(again).map(\.authorization))
        }
        expectEqual(authorizations.count, 1)
        expectEqual(calls.party.tokensSigned, 2)
    }

    @Test func `the team's own key signs, and without a team only one key is clear`() {
        var calls = Self.calls([Self.first, Self.second])
        expectEqual(
            Self.replies(calls.handedIn(1, Self.call(), at: Self.at(0))),
            [.unsent(.noCredential)]
        )
        let named = Self.call(team: Self.second.teamID)
        expectEqual(Self.requests(calls.handedIn(2, named, at: Self.at(0))).count, 1)
        let unknown = Self.call(team: "TEAM000000")
        expectEqual(
            Self.replies(calls.handedIn(3, unknown, at: Self.at(0))),
            [.unsent(.noCredential)]
        )
        var none = Self.calls([])
        expectEqual(
            Self.replies(none.handedIn(1, Self.call(), at: Self.at(0))),
            [.unsent(.noCredential)]
        )
    }

    @Test func `a key of a test authority is called about where a host for it is named`() {
        var calls = Self.calls()
        expectEqual(
            Self.replies(calls.handedIn(1, Self.call(.receipts, .test), at: Self.at(0))),
            [.unsent(.noHost)]
        )
    }

    @Test func `two calls are under way at once, ten wait, and the next one is not taken`() {
        var calls = Self.calls()
        for ticket in 1...12 as ClosedRange<UInt64> {
            let actions = calls.handedIn(ticket, Self.call(), at: Self.at(0))
            expectEqual(Self.requests(actions).count, ticket <= 2 ? 1 : 0)
        }
        expectEqual(
            Self.replies(calls.handedIn(13, Self.call(), at: Self.at(0))),
            [.unsent(.queueFull)]
        )
        // The other service has a line of its own.
        expectEqual(
            Self.requests(calls.handedIn(14, Self.call(.queryBits), at: Self.at(0))).count,
            1
        )
        let actions = calls.answered(1, Self.answer(200), at: Self.at(1))
        expectEqual(Self.requests(actions).count, 1)
        expectEqual(calls.standing.map(\.line.waitingCount), [9, 0])
    }

    @Test func `the rate holds calls back, and one wake-up is asked for`() {
        var calls = Self.calls(concurrent: 64, perSecond: 2)
        var wakes = 0
        for ticket in 1...4 as ClosedRange<UInt64> {
            let actions = calls.handedIn(ticket, Self.call(), at: Self.at(0))
            wakes += actions.count { if case .wake = $0 { true } else { false } }
        }
        expectEqual(wakes, 1)
        let host = AppleHost(.receipts, .production)
        expectEqual(Self.requests(calls.woken(host, at: Self.at(0.5))).count, 1)
        expectEqual(Self.requests(calls.woken(host, at: Self.at(1))).count, 1)
        expectEqual(Self.requests(calls.woken(host, at: Self.at(1.5))).count, 1)
        expectEqual(Self.requests(calls.woken(host, at: Self.at(2))).count, 0)
    }

    @Test func `a call that waits too long was not sent, and one under way has an unknown end`() {
        var calls = Self.calls(concurrent: 1)
        _ = calls.handedIn(1, Self.call(), at: Self.at(0))
        _ = calls.handedIn(2, Self.call(), at: Self.at(0))
        expectEqual(Self.replies(calls.timeIsUp(2, at: Self.at(10))), [.unsent(.queueTimeout)])
        expectEqual(Self.replies(calls.timeIsUp(1, at: Self.at(10))), [.failed(.timeout)])
        // Late news is dropped.
        expectEqual(calls.answered(1, Self.answer(200), at: Self.at(11)), [])
        expectEqual(calls.timeIsUp(1, at: Self.at(12)), [])
    }

    @Test func `when the host is left alone, calls that wait are told at once, each once`() {
        var calls = Self.calls(concurrent: 1)
        for ticket in 1...8 as ClosedRange<UInt64> {
            _ = calls.handedIn(ticket, Self.call(), at: Self.at(0))
        }
        var replies: [CallReply] = []
        for ticket in 1...5 as ClosedRange<UInt64> {
            replies += Self.replies(calls.answered(ticket, .failed(.timeout), at: Self.at(1)))
        }
        expectEqual(replies.filter { $0 == .failed(.timeout) }.count, 5)
        expectEqual(replies.filter { $0 == .unsent(.breakerOpen) }.count, 3)
        expectEqual(
            Self.replies(calls.handedIn(9, Self.call(), at: Self.at(1.5))),
            [.unsent(.breakerOpen)]
        )
        // After the pause one call tries, on a new connection, and its success lets all in.
        let probe = Self.requests(calls.handedIn(10, Self.call(), at: Self.at(3)))
        expectEqual(probe.map(\.avoidsOldConnections), [true])
        expectEqual(
            Self.replies(calls.handedIn(11, Self.call(), at: Self.at(3))),
            [.unsent(.breakerOpen)]
        )
        _ = calls.answered(10, Self.answer(200), at: Self.at(3))
        let next = Self.requests(calls.handedIn(12, Self.call(), at: Self.at(3)))
        expectEqual(next.map(\.avoidsOldConnections), [false])
    }

    @Test func `calls with little time say nothing about the host when they get no answer`() {
        var calls = Self.calls()
        for ticket in 1...20 as ClosedRange<UInt64> {
            let now = Self.at(Double(ticket))
            let call = Self.call(timeout: .milliseconds(999))
            expectEqual(Self.requests(calls.handedIn(ticket, call, at: now)).count, 1)
            expectEqual(Self.replies(calls.answered(ticket, .failed(.timeout), at: now)).count, 1)
        }
        expectEqual(calls.standing.map(\.line.condition), [.closed])
        expectEqual(calls.standing.map(\.line.underWayCount), [0])
    }

    @Test func `a 429 leaves the host alone for as long as Apple asks`() {
        var calls = Self.calls()
        _ = calls.handedIn(1, Self.call(), at: Self.at(0))
        _ = calls.answered(1, Self.answer(429, retryAfter: 30), at: Self.at(0))
        expectEqual(
            Self.replies(calls.handedIn(2, Self.call(), at: Self.at(29))),
            [.unsent(.breakerOpen)]
        )
        expectEqual(Self.requests(calls.handedIn(3, Self.call(), at: Self.at(31))).count, 1)
    }

    @Test func `a stop tells all, and nothing is called after it`() {
        var calls = Self.calls(concurrent: 1)
        _ = calls.handedIn(1, Self.call(), at: Self.at(0))
        _ = calls.handedIn(2, Self.call(), at: Self.at(0))
        let actions = calls.stopped(at: Self.at(1))
        expectEqual(Self.replies(actions), [.failed(.stopping), .unsent(.stopping)])
        expectEqual(Self.requests(actions), [])
        expectEqual(
            Self.replies(calls.handedIn(3, Self.call(), at: Self.at(1))),
            [.unsent(.stopping)]
        )
        expectEqual(calls.answered(1, Self.answer(401), at: Self.at(2)), [])
    }

    @Test func `a reload keeps the token of a key that stays, and forgets another's`() {
        var calls = Self.calls()
        let before = Self.requests(calls.handedIn(1, Self.call(), at: Self.at(0)))[0]
        _ = calls.replaced(Self.settings([Self.first, Self.second]), at: Self.at(1))
        let named = Self.call(team: Self.first.teamID)
        let after = Self.requests(calls.handedIn(2, named, at: Self.at(1)))[0]
        expectEqual(after.authorization, before.authorization)
        _ = calls.replaced(Self.settings([Self.second]), at: Self.at(2))
        _ = calls.answered(1, Self.answer(200), at: Self.at(2))
        _ = calls.replaced(Self.settings([Self.first]), at: Self.at(3))
        _ = calls.answered(2, Self.answer(200), at: Self.at(3))
        let last = Self.requests(calls.handedIn(3, Self.call(), at: Self.at(3)))[0]
        #expect(last.authorization != before.authorization)
    }

    /// Three calls, of which the last one waits.
    private static func waiting(_ credentials: [AppleCredential]) -> Queue {
        var calls = calls(credentials)
        let team = credentials.count > 1 ? first.teamID : nil
        for ticket in 1...3 as ClosedRange<UInt64> {
            _ = calls.handedIn(ticket, call(team: team), at: at(0))
        }
        return calls
    }

    @Test func `a call that waited for its turn is not signed with a key that was removed`() {
        var calls = Self.waiting([Self.first])
        let other = AppleCredential(
            teamID: Self.first.teamID,
            keyID: "NEXTKEY123",
            key: P256PrivateKey()
        )
        expectEqual(calls.replaced(Self.settings([other]), at: Self.at(1)), [])
        let requests = Self.requests(calls.answered(1, Self.answer(200), at: Self.at(2)))
        let header = requests.first?.authorization.split(separator: ".").first
        let bytes = header.flatMap { Base64.decode($0) } ?? []
        #expect(String(decoding: bytes, as: UTF8.self).contains("NEXTKEY123"))
        // A 401 of a call that began before is answered with the key that is there now.
        let again = Self.requests(calls.answered(2, Self.answer(401), at: Self.at(3)))
        expectEqual(again.map(\.authorization), requests.map(\.authorization))
    }

    @Test func `calls that wait end at once when a reload takes their key or host away`() {
        var calls = Self.waiting([Self.first, Self.second])
        let unsigned = calls.replaced(Self.settings([Self.second]), at: Self.at(1))
        expectEqual(unsigned.first, .reply(3, .unsent(.noCredential)))
        calls = Self.waiting([Self.first])
        var settings = Self.settings()
        settings.hosts[AppleHost(.receipts, .production)] = nil
        expectEqual(calls.replaced(settings, at: Self.at(1)).first, .reply(3, .unsent(.noHost)))
        expectEqual(calls.standing.first?.line.waitingCount, 0)
    }

    /// The end of the first one let the second one begin, which could not be written any more.
    @Test func `calls that the rate holds back all end when a reload takes their host away`() {
        var calls = Self.calls(concurrent: 64, perSecond: 2)
        for ticket in 1...3 as ClosedRange<UInt64> {
            _ = calls.handedIn(ticket, Self.call(), at: Self.at(0))
        }
        var settings = Self.settings()
        settings.hosts[AppleHost(.receipts, .production)] = nil
        let actions = calls.replaced(settings, at: Self.at(4))
        expectEqual(Self.requests(actions), [])
        expectEqual(Self.replies(actions), [.unsent(.noHost), .unsent(.noHost)])
    }

    @Test func `ends that are alike are told once a minute, with how many were not`() {
        var calls = Self.calls()
        let kind = AppleCall.Kind(.receipts, .production)
        var notices: [CallNotice<AppleCall>] = []
        for ticket in 1...4 as ClosedRange<UInt64> {
            let time = Self.at(ticket == 4 ? 61 : Double(ticket))
            _ = calls.handedIn(ticket, Self.call(), at: time)
            let actions = calls.answered(ticket, Self.answer(404), at: time)
            notices += actions.compactMap { if case .tell(let notice) = $0 { notice } else { nil } }
        }
        expectEqual(
            notices,
            [
                .ended(kind, .status(404), untold: 0),
                .ended(kind, .status(404), untold: 2),
            ]
        )
    }

    @Test func `every end is counted by service, environment and status`() {
        var calls = Self.calls()
        for (ticket, status) in [200, 200, 404].enumerated() {
            _ = calls.handedIn(UInt64(ticket), Self.call(), at: Self.at(0))
            _ = calls.answered(UInt64(ticket), Self.answer(status), at: Self.at(1))
        }
        _ = calls.handedIn(9, Self.call(.queryBits, .test), at: Self.at(0))
        let counted = calls.tally.sortedEnds.map {
            "\($0.end.kind.service) \($0.end.status) \($0.count)"
        }
        expectEqual(counted, ["queryBits no-host 1", "receipts 200 2", "receipts 404 1"])
        expectEqual(calls.tally.durations[.receipts]?.count, 3)
        expectEqual(calls.tally.durations[.deviceCheck], nil)
    }
}

extension CallRequest {
    fileprivate var authorization: String {
        fields.first { $0.name == "Authorization" }?.value ?? ""
    }
}
