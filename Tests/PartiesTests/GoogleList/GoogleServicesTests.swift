import Expectations
import KeyAttestation
import OutboundCalls
import Parties
import Testing

@Suite struct GoogleServicesTests {
    private static func text(_ entries: Int) -> [UInt8] {
        let all = (0..<entries).map { "\"a\($0)\": {\"status\": \"REVOKED\"}" }
        return Array("{\"entries\": {\(all.joined(separator: ", "))}}".utf8)
    }

    private static func known(_ entries: Int, tag: String? = nil) throws -> KnownStatusList {
        let list = try StatusList(json: text(entries))
        return KnownStatusList(list, date: 5, source: .google, tag: tag)
    }

    private static func copy(_ bytes: [UInt8]) -> FetchedCopy? {
        FetchedCopy(bytes, title: KnownStatusList.copyTitle)
    }

    private static func reply(
        _ status: Int,
        _ content: [UInt8] = text(1),
        _ fields: [String: String] = [:],
        known: KnownStatusList? = nil
    ) -> StatusListReply {
        StatusListReply(status: status, content: content, fields: fields, known: known, now: 1_000)
    }

    @Test func `the release has Google's list, with what it says of each serial`() throws {
        let known = try KnownStatusList.ofRelease()
        expectEqual(known.source, .release)
        #expect(known.list.count > 400)
        let serial = try #require(CertificateSerial("6681152659205225093"))
        expectEqual(known.list[serial]?.description, "REVOKED (KEY_COMPROMISE)")
        expectEqual(known.list[CertificateSerial(written: "6681152659205225094")], nil)
    }

    @Test func `a list has the date at which Google vouched for it, and its tag`() throws {
        let fields = ["age": "300", "etag": "\"x\"", "cache-control": "max-age=3600"]
        guard case .list(let list) = Self.reply(200, Self.text(3), fields) else {
            Issue.record("no list")
            return
        }
        expectEqual(list.date, 700)
        expectEqual(list.tag, "\"x\"")
        expectEqual(list.list.count, 3)
        expectEqual(list.source, .google)
        guard case .list(let odd) = Self.reply(200, Self.text(3), ["etag": "x\r\ny: 1"]) else {
            Issue.record("no list")
            return
        }
        expectEqual(odd.tag, nil)
    }

    @Test func `what is no list leaves the one before in use`() throws {
        for text in ["", "{}", "<html>", "{\"entries\": []}", "{\"entries\": {\"x\": {}}}"] {
            expectEqual(Self.reply(200, Array(text.utf8)), .refused(.unreadable), "\(text)")
        }
        for status in [204, 301, 403, 404, 500] {
            expectEqual(Self.reply(status), .refused(.status), "\(status)")
        }
        expectEqual(Self.reply(304), .refused(.status))
        let tagged = try Self.known(1, tag: "\"x\"")
        expectEqual(Self.reply(304, [], ["age": "10"], known: tagged), .unchanged(at: 990))
    }

    @Test func `a list that has lost most of its entries is not believed`() throws {
        let known = try Self.known(200)
        expectEqual(Self.reply(200, Self.text(99), known: known), .refused(.shrunk))
        expectEqual(Self.reply(200, Self.text(0), known: known), .refused(.shrunk))
        for (before, after) in [(200, 100), (99, 0), (200, 201)] {
            let reply = Self.reply(200, Self.text(after), known: try Self.known(before))
            guard case .list = reply else {
                Issue.record("\(before) to \(after): \(reply)")
                continue
            }
        }
        // The release's list is years old.
        let release = try KnownStatusList.ofRelease()
        guard case .list = Self.reply(200, Self.text(0), known: release) else {
            Issue.record("the first list of Google's was refused")
            return
        }
    }

    @Test(
        arguments: [
            (["cache-control": "public, max-age=3600"], 3_600),
            (["cache-control": "Max-Age=\"60\", public"], 60),
            (["cache-control": "max-age=3600", "age": "600"], 3_000),
            (["cache-control": "max-age=60", "age": "600"], 0),
            (["cache-control": "max-age=60", "age": "-5"], 60),
            (["cache-control": "max-age=60", "age": "x"], 60),
            (["cache-control": "no-cache, max-age=60"], 0), (["cache-control": "no-store"], 0),
            (["cache-control": "max-age=-1"], 0), (["cache-control": "s-maxage=9"], nil),
            (["cache-control": "max-age=99999999999999999999"], nil), ([:], nil),
        ] as [([String: String], Int?)]
    )
    func `an answer is fresh for max-age less Age`(fields: [String: String], seconds: Int?) {
        expectEqual(FetchedFields(fields).freshness, seconds.map { .seconds($0) })
    }

    @Test func `a request comes when the answer is no longer fresh, within the bounds`() {
        let bounds = FetchSchedule.Bounds(least: .seconds(100), most: .seconds(1_000))
        var schedule = FetchSchedule(bounds)
        expectEqual(schedule.first(age: nil), .zero)
        expectEqual(schedule.first(age: 30), .seconds(70))
        expectEqual(schedule.first(age: 101), .zero)
        expectEqual(schedule.first(age: -9), .zero)
        expectEqual(schedule.answered(fresh: .seconds(500), random: 0), .seconds(500))
        expectEqual(schedule.answered(fresh: .zero, random: 7), .seconds(100))
        expectEqual(schedule.answered(fresh: .seconds(9_999), random: 0), .seconds(1_000))
        expectEqual(schedule.answered(fresh: nil, random: 0), .seconds(1_000))
        for random in [1, 77_777, .max] as [UInt64] {
            let spread = schedule.answered(fresh: .seconds(500), random: random)
            #expect((.seconds(450)...Duration.seconds(500)).contains(spread))
        }
    }

    @Test func `after failures the pause grows to a bound, and Retry-After is obeyed within it`() {
        let bounds = FetchSchedule.Bounds(least: .seconds(100), most: .seconds(1_000))
        var schedule = FetchSchedule(bounds)
        let pauses = (0..<12).map { _ in schedule.failed(retryAfter: nil, random: 0) }
        expectEqual(pauses[0], .seconds(5))
        expectEqual(pauses, pauses.sorted())
        expectEqual(pauses[11], .seconds(300))
        expectEqual(schedule.failed(retryAfter: 700, random: 0), .seconds(700))
        expectEqual(schedule.failed(retryAfter: 99_999, random: 0), .seconds(1_000))
        _ = schedule.answered(fresh: nil, random: 0)
        expectEqual(schedule.failed(retryAfter: nil, random: 0), .seconds(5))
    }

    @Test func `the copy on disk is read as it was written, and nothing else is`() throws {
        let text = Self.text(2)
        for tag in [nil, "\"x\""] {
            let file = FetchedCopy(
                title: KnownStatusList.copyTitle,
                url: "https://a/b",
                date: 77,
                tag: tag,
                text: text
            )
            expectEqual(Self.copy(file.bytes), file)
            let known = try #require(Self.copy(file.bytes).flatMap { KnownStatusList($0) })
            expectEqual(known.date, 77)
            expectEqual(known.tag, tag)
            expectEqual(known.source, .copy)
            expectEqual(known.list.count, 2)
            // Cut anywhere, it is no list.
            for count in 0..<file.bytes.count {
                let cut = Self.copy(Array(file.bytes.prefix(count)))
                expectEqual(cut.flatMap { KnownStatusList($0) }, nil)
            }
        }
        expectEqual(Self.copy(text), nil)
    }
}
