import Expectations
import Rules
import Testing
import Verification

@testable import Services

/// What is said of an order before it refuses anybody, and which orders need a confirmation.
@Suite struct RolloutForecastTests {
    /// Of an order to refuse all that are not verified, after these requests.
    private func forecast(
        _ requests: [ReportedRequest],
        limit: Share? = nil
    ) throws -> RolloutForecast {
        var ledger = ReportLedger(startedAt: 1_000)
        ledger.add([ReportCounts.Entry(rule: "orders", counts: RuleCounts(requests))], at: 1_010)
        let report = Report(
            ledger,
            of: [RuleFacts(id: "orders", mode: "observe", rollout: "100% by key", origin: "shop")],
            ReportScope(rule: "orders", windows: [.hour]),
            at: (1_776_679_200, 1_776_679_215, 1_015)
        )
        return try #require(
            RolloutForecast("orders", report, from: .none, to: .whole, limit: limit)
        )
    }

    @Test func `more than 2 % of the requests ask, with a guard more than its share`() throws {
        // None of them names a key, so no install is refused.
        let refused = [ReportedRequest](repeating: .bare(1), count: 10)
        func asks(_ verified: Int, limit: Share? = nil) throws -> Bool {
            let passed = [ReportedRequest](repeating: .signed(1), count: verified)
            return try forecast(passed + refused, limit: limit).asksConfirmation
        }
        #expect(try !asks(490))
        #expect(try asks(489))
        let (low, high) = (Share(percent: "1%"), Share(percent: "20%"))
        #expect(try asks(490, limit: low))
        #expect(try !asks(40, limit: high))
        #expect(try asks(39, limit: high))
    }

    @Test func `fewer than ten requests ask, also where all of them passed`() throws {
        func doubt(_ passed: Int, refused: Int) throws -> RolloutForecast.Doubt? {
            let refusals = (0..<refused).map {
                ReportedRequest.signed(100 + $0, .refuse(.counterReplayed))
            }
            return try forecast((0..<passed).map { .signed($0) } + refusals).doubt
        }
        expectEqual(try doubt(1, refused: 0), .fewRequests)
        expectEqual(try doubt(9, refused: 0), .fewRequests)
        expectEqual(try doubt(10, refused: 0), nil)
        expectEqual(try doubt(5, refused: 4), .fewRequests)
        expectEqual(try doubt(0, refused: 1), .manyRefused)
        expectEqual(try doubt(0, refused: 9), .manyRefused)
        let document = String(decoding: try forecast([.signed(1)]).json(order: nil), as: UTF8.self)
        #expect(document.contains(#""confirm":"needed","doubt":"few-requests""#), "\(document)")
    }

    @Test func `most of the requests or installs ask, however few they are`() throws {
        // None of them names a key, so no install is refused.
        func asks(_ verified: Int, bare: Int) throws -> Bool {
            let passed = (0..<verified).map { ReportedRequest.signed($0) }
            let refused = [ReportedRequest](repeating: .bare(1), count: bare)
            return try forecast(passed + refused).asksConfirmation
        }
        #expect(try !asks(9, bare: 9))
        #expect(try asks(8, bare: 9))
        // Two of three installs, and two of a hundred requests.
        let lone = [ReportedRequest](repeating: .signed(0), count: 98)
        let refused = (1...2).map { ReportedRequest.signed($0, .refuse(.counterReplayed)) }
        expectEqual(try forecast(lone + refused).doubt, .manyRefused)
    }

    @Test func `where no request was judged, an order asks`() throws {
        let forecast = try forecast([])
        #expect(forecast.asksConfirmation)
        #expect(forecast.lines[0].contains("no request was judged"))
        let document = String(decoding: forecast.json(order: nil), as: UTF8.self)
        #expect(document.contains(#""confirm":"needed","doubt":"no-requests""#), "\(document)")
        // Nor where the report does not know the rule, as right after a start.
        let report = Report(
            ReportLedger(startedAt: 1_000),
            of: [],
            ReportScope(rule: "orders", windows: [.hour]),
            at: (1_776_679_200, 1_776_679_215, 1_015)
        )
        let blind = RolloutForecast("orders", report, from: .none, to: .whole, limit: nil)
        #expect(blind?.asksConfirmation == true)
        // What refuses no more clients never asks.
        #expect(RolloutForecast("orders", report, from: .whole, to: .whole, limit: nil) == nil)
    }

    @Test func `an order about all rules asks where it does for one of them`() throws {
        var ledger = ReportLedger(startedAt: 1_000)
        let passed = [ReportedRequest](repeating: .signed(1), count: 100)
        let counts = RuleCounts(passed)
        let ids = (0..<9).map { "rule\($0)" }
        for id in ids { ledger.add([ReportCounts.Entry(rule: id, counts: counts)], at: 1_010) }
        let report = Report(
            ledger,
            of: ids.map {
                RuleFacts(id: $0, mode: "observe", rollout: "100% by key", origin: "shop")
            },
            ReportScope(windows: [.hour]),
            at: (1_776_679_200, 1_776_679_215, 1_015)
        )
        func forecasts(_ rules: [String]) -> RolloutForecasts {
            RolloutForecasts(
                rules.compactMap { rule in
                    RolloutForecast(rule, report, from: .none, to: .whole, limit: nil)
                }
            )
        }
        let known = forecasts(["rule0", "rule1"])
        #expect(!known.asksConfirmation)
        #expect(known.lines.allSatisfy { $0.contains(" would have refused 0 of 100 ") })
        let document = String(decoding: known.json(order: 7), as: UTF8.self)
        #expect(
            document.hasPrefix(
                #"{"order":7,"rule":"*","confirm":"none","doubt":null,"requests":200,"#
            )
        )
        // Of this one no request was judged. It comes first, and the counts of others say nothing.
        let blind = forecasts(ids + ["new"])
        #expect(blind.asksConfirmation)
        #expect(blind.lines[0].hasPrefix("new: last hour ("))
        expectEqual(blind.lines.count, 8)
        expectEqual(blind.lines.last, "and 3 more rules refuse more clients")
        let said = String(decoding: blind.json(order: nil), as: UTF8.self)
        let needed = #"{"rule":"*","confirm":"needed","doubt":"no-requests","requests":0,"#
        #expect(said.hasPrefix(needed), "\(said)")
    }

    @Test func `a few requests of many of the installs ask`() throws {
        let refused = (1...20).map { ReportedRequest.signed($0, .refuse(.counterReplayed)) }
        let ofOne = [ReportedRequest](repeating: .signed(0), count: 2_000)
        let few = try forecast(ofOne + refused)
        #expect(few.asksConfirmation)
        #expect(few.lines[0].contains(" would have refused 20 of 2020 requests (0.99%): "))
        let ofMany = (100..<2_100).map { ReportedRequest.signed($0) }
        #expect(try !forecast(ofMany + refused).asksConfirmation)
    }

    @Test func `the builds that would be refused have their versions, the most refused first`()
        throws
    {
        let requests: [ReportedRequest] = [
            .signed(1, .refuse(.counterReplayed), version: "1042"),
            .signed(2, .refuse(.signatureMismatch), version: "1042"),
            .signed(3, .refuse(.unsupported), version: "1042"),
            .signed(4, .failure(.store), version: "1042"), .signed(5, version: "1042"),
            .signed(6, version: "1043"), .bare(1, claimed: "1031"), .bare(2, claimed: "1031"),
            .bare(3),
        ]
        let lines = try forecast(requests).lines
        let builds = "1042: 3 of 5, 1031 (claimed): 2 of 2, not known: 1 of 1"
        expectEqual(lines.count, 2)
        expectEqual(lines.last, "not verified, by build: \(builds)")
        // Five at most.
        let seven = (1...7).flatMap { number in
            [ReportedRequest](repeating: .bare(1, claimed: "\(number)"), count: number)
        }
        let five = (3...7).reversed().map { "\($0) (claimed): \($0) of \($0)" }
        let last = try forecast(seven).lines.last
        expectEqual(last, "not verified, by build: " + five.joined(separator: ", "))
    }
}
