import Expectations
import HTTPWire
import Synchronization
import Testing

@testable import Services

@Suite struct FrontTrialTests {
    private final class KeptTrials: TrialKeeping {
        private let trials = Mutex(FrontTrials())

        func change<Value: Sendable>(_ body: (inout FrontTrials) -> Value) -> Value {
            trials.withLock { body(&$0) }
        }
    }

    private static let host = "api.example.com"
    private static let trials = FrontTrial.all(headers: ["x-account"], contentMax: 5_000)

    private static func trial(_ kind: FrontTrial.Kind) throws -> FrontTrial {
        try #require(trials.first { $0.kind == kind })
    }

    /// What arrives where nothing is changed.
    private static func sighting(_ trial: FrontTrial) -> TrialSighting {
        var seen = TrialSighting()
        seen.method = trial.method
        seen.target = "/trial\(trial.path)\(trial.query)"
        seen.host = host
        seen.fields = trial.fields.map { "\($0.name): \($0.value)" }
        seen.framing = trial.isChunked ? "chunked" : trial.content.isEmpty ? "none" : "length"
        seen.content = TrialSighting.Content(trial.content)
        return seen
    }

    private func changes(
        _ kind: FrontTrial.Kind,
        _ change: (inout TrialSighting) -> Void = { _ in }
    ) throws -> [FrontChange] {
        let trial = try Self.trial(kind)
        var seen = Self.sighting(trial)
        change(&seen)
        let target = "/trial\(trial.path)\(trial.query)"
        return trial.changes(seen, target: target, host: Self.host)
    }

    @Test(arguments: FrontTrial.Kind.allCases)
    func `what arrives as it was sent is unchanged`(kind: FrontTrial.Kind) throws {
        #expect(try changes(kind).isEmpty)
    }

    @Test func `each part that a front can change is named`() throws {
        try expectEqual(changes(.method) { $0.method = "PATCH" }, [.method("PATCH")])
        let target = "/trial/a/b/A//~?b=%2f&a=1;c&a=%41"
        try expectEqual(changes(.spelling) { $0.target = target }, [.path(target)])
        let query = "/trial/a//b/./%41/%2f%7E?a=1&b=%2f"
        try expectEqual(changes(.spelling) { $0.target = query }, [.query(query)])
        try expectEqual(changes(.plain) { $0.host = "inner" }, [.host("inner")])
        try expectEqual(changes(.headers) { $0.fields = [] }, [.fieldsLost(["x-account"])])
        let rewritten = try changes(.headers) { $0.fields = ["X-Account: portcullis-trial, b"] }
        expectEqual(rewritten, [.fieldsRewritten(["x-account"])])
        let twice = try changes(.headers) { $0.fields += $0.fields }
        expectEqual(twice, [.fieldsRewritten(["x-account"])])
    }

    @Test func `a signed Host is compared as the host, and is no field of a trial`() throws {
        let both = FrontTrial.all(headers: ["host", "x-account"], contentMax: nil)
        let trial = try #require(both.first { $0.kind == .headers })
        expectEqual(trial.fields.map(\.name), ["x-account"])
        let alone = FrontTrial.all(headers: ["host"], contentMax: nil)
        #expect(!alone.contains { $0.kind == .headers })
    }

    @Test func `content that is lost, cut, decoded or rewritten is told apart`() throws {
        let json = try Self.trial(.content).content
        try expectEqual(
            changes(.content) { $0.content = TrialSighting.Content([]) },
            [.contentLost]
        )
        try expectEqual(changes(.content) { $0.content = nil }, [.contentCut(to: nil)])
        let part = Array(json.prefix(9))
        try expectEqual(
            changes(.content) { $0.content = TrialSighting.Content(part) },
            [
                .contentCut(to: 9)
            ]
        )
        let other = Array(json.reversed())
        try expectEqual(
            changes(.content) { $0.content = TrialSighting.Content(other) },
            [
                .contentRewritten
            ]
        )
        let text = Array("portcullis portcullis portcullis portcullis\n".utf8)
        try expectEqual(
            changes(.gzip) { $0.content = TrialSighting.Content(text) },
            [.contentDecoded]
        )
        try expectEqual(changes(.content) { $0.isWhole = false }, [.contentUnsure])
        try expectEqual(changes(.chunks) { $0.framing = "length" }, [.lengthWritten])
        try expectEqual(changes(.content) { $0.framing = "chunked" }, [.chunksWritten])
    }

    @Test func `a sighting is read as it was written`() throws {
        var seen = Self.sighting(try Self.trial(.chunks))
        seen.form = "ext_authz"
        seen.asksWithContent = true
        seen.isWhole = false
        expectEqual(TrialSighting(json: seen.json.span), seen)
        expectEqual(TrialSighting(json: Array("{}".utf8).span), nil)
    }

    @Test func `an id is open once, for its time, and the oldest give way`() {
        var trials = FrontTrials()
        let ids = trials.open(2, now: 5).map { Array($0.utf8) }
        #expect(ids.allSatisfy { $0.count == FrontTrials.idCount } && ids[0] != ids[1])
        let arrivals: [(id: [UInt8], now: UInt64)] = [
            (Array("none".utf8), 5), (ids[0], 5), (ids[0], 5), (ids[1], 6 + FrontTrials.time),
            (ids[1], 5 + FrontTrials.time),
        ]
        var taken: [Bool] = []
        for (id, now) in arrivals {
            let isOpen = trials.isOpen(id, now: now)
            taken.append(trials.arrived(id, TrialSighting(), now: now))
            expectEqual(isOpen, taken.last)
        }
        expectEqual(taken, [false, true, false, false, true])
        trials.read(ids[0], .init([1, 2, 3]))
        let names = ids.map { String(decoding: $0, as: UTF8.self) }
        expectEqual(trials.sightings(names + ["none"]).map { $0?.content?.count }, [3, nil, nil])
        let many = trials.open(1_000, now: 7)
        expectEqual(many.count, FrontTrials.openMax)
        expectEqual(trials.sightings(names), [nil, nil])
    }

    @Test func `the path of a trial is the gateway's, whether its id is open or not`() throws {
        let trials = KeptTrials()
        let table = ServiceTable(below: "/own", for: .clients(trials), [])
        let id = trials.change { $0.open(1, now: 0) }[0]
        func find(_ target: String) throws -> String? {
            let text = Array("POST \(target) HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n".utf8)
            var head = RequestHead()
            try head.read(text.span, isSecure: false, limits: HeadLimits())
            let question = DecisionQuestion(.extAuthz, content: .whole)
            let asked = (question: question, content: AskedContent.unseen)
            return switch table.trial(head, text.span, asked: asked, now: 1) {
            case nil: nil
            case .service(let entry): entry.name
            case .refused(let response, _): response.outcome.reason
            case .some: "other"
            }
        }
        for target in ["/", "/own/keys", "/own-trial", "/Own-trial/\(id)", "/a/own-trial/\(id)"] {
            try expectEqual(find(target), nil)
        }
        for target in ["/own-trial/", "/own-trial/\(id.dropLast())", "/own-trial/x\(id)"] {
            try expectEqual(find(target), "no-such-endpoint")
        }
        try expectEqual(find("/own-trial/\(id)//a?b"), "trial")
        try expectEqual(find("/own-trial/\(id)"), "no-such-endpoint")
        let seen = try #require(trials.change { $0.sightings([id]) }[0])
        #expect(seen.target == "/own-trial/\(id)//a?b" && seen.method == "POST" && seen.host == "a")
        #expect(seen.form == "ext_authz" && seen.asksWithContent)
        #expect(!seen.isWhole && seen.content == nil)
    }
}
