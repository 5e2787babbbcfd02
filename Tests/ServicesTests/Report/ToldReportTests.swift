import Encodings
import Expectations
import Foundation
import Rules
import Telemetry
import Testing
import Verification

@testable import Services

/// The reports that gateways of a fleet tell each other.
@Suite struct ToldReportTests {
    private static let facts = [
        RuleFacts(id: "orders", mode: "enforce", rollout: "25% by key", origin: "shop")
    ]

    /// What a gateway has counted, whose clock of slots is its own.
    private func report(
        _ rules: [String: [ReportedRequest]],
        tick: Int64,
        wall: Int64 = 1_776_679_215,
        marks: [Report.Mark] = []
    ) -> Report {
        var ledger = ReportLedger(startedAt: tick - 20)
        ledger.add(
            rules.sorted { $0.key < $1.key }.map {
                ReportCounts.Entry(rule: $0.key, counts: RuleCounts($0.value))
            },
            at: tick - 5
        )
        return Report(
            ledger,
            of: Self.facts,
            ReportScope(),
            marks: marks,
            at: (wall - 20, wall, tick)
        )
    }

    private let requests: [ReportedRequest] = [
        .signed(1, version: "7"), .signed(2, .refuse(.counterReplayed), isRefused: true),
        .signed(3, .failure(.store)), .bare(9, claimed: "6"), .bare(10),
    ]

    private func of(_ names: String...) -> ToldGateways {
        ToldGateways(names.map { ToldGateways.Entry($0, .answered) })
    }

    @Test func `a report that another gateway reads says the same`() throws {
        let mark = Report.Mark(.fall, at: 1_776_679_000, "orders: enforce → observe")
        let own = report(["orders": requests, "gone": [.bare(1)]], tick: 1015, marks: [mark])
        let read = try Report(told: own.told)
        let nothing = report([:], tick: 77)
        let scope = ReportScope()
        let shown = Report(nothing, isCounted: false, others: [(read, 0)], scope, of: of("g1"))
        var direct = own
        direct.gateways = of("g1")
        expectEqual(shown.json, direct.json)
        let lines = shown.text.split(separator: "\n")
        expectEqual(lines[1], "gateways: g1")
        #expect(lines.contains("gone: no rule of this gateway"))
        expectEqual(shown.marks, [mark])
        // Slots begin at full steps, so that those of several gateways can be added up.
        expectEqual(shown.allSeries[0].points.map { $0.at % 10 }, [0])
        expectEqual(shown.allSeries[0].points[0].point.counts, [1, 3, 0, 1, 1, 0])
    }

    @Test func `an install at two gateways is one install`() throws {
        let first = report(["orders": requests], tick: 1015)
        let second = report(["orders": requests + [.signed(4)]], tick: 400_003)
        let all = Report(
            first,
            isCounted: true,
            others: [(try Report(told: second.told), 0)],
            ReportScope(rule: "orders", windows: [.hour]),
            of: of("g0", "g1")
        )
        expectEqual(all.entries.map(\.id), ["orders"])
        let counts = all.entries[0].parts[0].counts
        #expect(counts.requests == 11 && counts.refused == 2)
        #expect((3...4).contains(counts.installCount))
        expectEqual(counts.steps[3].addressCount, 2)
        expectEqual(all.entries[0].facts?.mode, "enforce")
        expectEqual(counts.groups.reduce(0) { $0 + $1.cells.total }, 11)
    }

    @Test func `what was said before a window began is out of it`() throws {
        let last = try Report(told: report(["orders": requests], tick: 1015).told)
        let gateways = ToldGateways([.init("g1", .lastSaid(400, hasEnded: false))])
        let own = report([:], tick: 50)
        let all = Report(own, isCounted: true, others: [(last, 400)], ReportScope(), of: gateways)
        expectEqual(all.entries[0].parts.map(\.counts.requests), [0, 5, 5])
        #expect(all.text.contains("\ng1 has not answered: what it said 400 s ago counts\n"))
        let json = try JSONSerialization.jsonObject(with: Data(all.json)) as? [String: Any]
        let told = try #require(json?["gateways"] as? [[String: Any]])
        #expect(told[0]["age_seconds"] as? Int == 400 && told[0]["answered"] as? Bool == false)
    }

    @Test func `a gateway with a wrong clock counts for now`() throws {
        let wrong = report(["orders": requests], tick: 1015, wall: 1_776_679_215 + 7200)
        let own = report([:], tick: 50)
        let all = Report(
            own,
            isCounted: true,
            others: [(try Report(told: wrong.told), 2)],
            ReportScope(),
            of: of("g0", "g1")
        )
        let points = all.entries[0].series[0].points
        expectEqual(points.count, 1)
        #expect(points.allSatisfy { abs($0.at - 1_776_679_215) < 30 })
    }

    @Test func `too many rules are left out, and it is said how many`() throws {
        let builds = (0..<24).map { ReportedRequest.signed($0, version: "\($0)") }
        let rules = Dictionary(
            uniqueKeysWithValues: (0..<400).map { ("rule-\($0)", builds + requests) }
        )
        let told = report(rules, tick: 1015).told
        #expect(told.count <= Report.toldBytesMax)
        let read = try Report(told: told)
        #expect(read.omitted > 0)
        expectEqual(read.entries.count + read.omitted, 401)
        #expect(read.text.contains("\n\(read.omitted) rules are left out"))
    }

    @Test func `a report that is cut, goes on or has another form is refused`() throws {
        let told = report(["orders": requests], tick: 1015).told
        for count in 0..<told.count {
            #expect(throws: ByteReader.Fault.self) { try Report(told: Array(told[..<count])) }
        }
        #expect(throws: ByteReader.Fault.self) { try Report(told: told + [0]) }
        #expect(throws: ByteReader.Fault.self) { try Report(told: [1] + told[1...]) }
    }

    @Test func `all that clients can make a rule distinguish is read`() throws {
        let requests = Refusal.allCases.flatMap { refusal in
            (0..<30).map { ReportedRequest.signed($0, .refuse(refusal), version: "\($0)") }
        }
        let own = report(["orders": requests], tick: 1015)
        let counts = try Report(told: own.told).entries[0].parts[0].counts
        #expect(counts.cells.count > RuleCounts.cellsMax)
        expectEqual(counts.requests, UInt64(requests.count))
        expectEqual(counts.installCount, own.entries[0].parts[0].counts.installCount)
    }

    @Test func `a time that no gateway can have told is a fault, and no overflow`() throws {
        var told = report([:], tick: 1015).told
        _ = try Report(told: told)
        // The second number is the gateway's clock.
        told.replaceSubrange(9..<17, with: [0x80] + [UInt8](repeating: 0, count: 7))
        #expect(throws: ByteReader.Fault.self) { try Report(told: told) }
    }
}
