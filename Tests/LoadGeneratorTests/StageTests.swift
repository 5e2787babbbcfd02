import Expectations
import Histogram
import Testing

@testable import LoadGenerator

@Suite struct StageTests {
    private static let second: UInt64 = 1_000_000_000

    private static func pacing(
        _ stages: [String],
        count: UInt64? = nil,
        warmUp: UInt64 = 0
    ) throws -> Pacing {
        let read = try stages.map { try #require(LoadStage($0), "\($0)") }
        return try Pacing(stages: read, countLimit: count, warmUp: warmUp)
    }

    /// When the requests of a run with one event loop are due, in milliseconds.
    private static func due(_ pacing: Pacing, _ numbers: some Sequence<UInt64>) -> [UInt64?] {
        numbers.map { number in
            pacing.due(number, loop: 0, of: 1).map { $0 == .max ? .max : $0 / 1_000_000 }
        }
    }

    @Test func `a stage has a time, and one rate or two`() {
        let even = LoadStage("30s:100/s")
        expectEqual(even?.length.nanoseconds, 30 * Self.second)
        expectEqual(even?.first, 100)
        expectEqual(even?.last, 100)
        let ramp = LoadStage("1m:0.5..500/s")
        expectEqual(ramp?.first, 0.5)
        expectEqual(ramp?.last, 500)
        let onwards = LoadStage("500ms:..500/s")
        expectEqual(onwards?.first, nil)
        expectEqual(onwards?.last, 500)
        expectEqual(LoadStage("5s:0/s")?.last, 0)
    }

    @Test(arguments: [
        "", "30s", "30s:", "30s:100", "30s:100/m", "100/s", "0s:100/s", "30:100/s", "30s:-1/s",
        "30s:1..2..3/s", "30s:1../s", "30s:100/s..5/s", "30s:1e3/s", "30s:nan/s", "30s:inf/s",
        "30s:0.0001/s", "30s:10000001/s", "30s:1/s:2/s", "30s: 1/s", "30s:..5", "30s:0x10/s",
    ])
    func `what is no stage is refused`(text: String) { expectEqual(LoadStage(text), nil) }

    @Test func `each stage begins where the one before it ends`() throws {
        let pacing = try Self.pacing(["2s:2/s", "1s:4/s"])
        expectEqual(Self.due(pacing, 0..<9), [0, 500, 1000, 1500, 2000, 2250, 2500, 2750, .max])
        expectEqual(pacing.end, 3 * Self.second)
        expectEqual(pacing.expectedCount, 8)
        let stages = [0, 1_999, 2_000, 2_999, 9_999].map { pacing.stage(at: $0 * 1_000_000) }
        expectEqual(stages, [0, 0, 1, 1, 1])
    }

    /// From 0 to 8 a second in 4 s: t² requests until the second t.
    @Test func `a ramp sends as many as the area under it`() throws {
        let pacing = try Self.pacing(["4s:..8/s"])
        expectEqual(Self.due(pacing, [0, 1, 4, 9, 16]), [0, 1000, 2000, 3000, .max])
        expectEqual(pacing.expectedCount, 16)
        let schedule = try #require(pacing.schedule)
        expectEqual(schedule.dueCount(by: 3 * Self.second), 9)
        expectEqual(schedule.dueCount(by: 9 * Self.second), 16)
        // Downwards the same, from the other end.
        let down = try Self.pacing(["4s:8..0/s"])
        expectEqual(Self.due(down, [0, 7, 12, 15, 16]), [0, 1000, 2000, 3000, .max])
    }

    @Test func `a ramp goes on from the rate before it`() throws {
        let pacing = try Self.pacing(["1s:2/s", "2s:..6/s"])
        // 2t + t² requests in the second stage's first t seconds.
        expectEqual(Self.due(pacing, [0, 1, 2, 5]), [0, 500, 1000, 2000])
        expectEqual(pacing.expectedCount, 10)
    }

    @Test func `nothing is due in a pause`() throws {
        let pacing = try Self.pacing(["1s:2/s", "5s:0/s", "1s:2/s", "1s:0/s"])
        expectEqual(Self.due(pacing, 0..<5), [0, 500, 6000, 6500, .max])
        expectEqual(pacing.end, 8 * Self.second)
    }

    @Test func `requests are due later and later, over ramps and event loops`() throws {
        let pacing = try Self.pacing(["3s:..1000/s", "2s:1000/s", "3s:..1/s", "4s:..900/s"])
        let count = try #require(pacing.expectedCount)
        var last: UInt64 = 0
        for number in 0..<count {
            let due = try #require(pacing.due(number / 3, loop: Int(number % 3), of: 3))
            #expect(due >= last && due < pacing.end, "request \(number)")
            last = due
        }
        expectEqual(pacing.due(count / 3 + 1, loop: 0, of: 3), .max)
    }

    /// A slope so small that the usual formula would lose its digits.
    @Test func `a ramp that hardly rises keeps its beat`() throws {
        let pacing = try Self.pacing(["1000h:1000..1000.001/s"])
        let due = try #require(pacing.due(1_000, loop: 0, of: 1))
        #expect(abs(Int64(due) - 1_000_000_000) < 1_000)
    }

    @Test func `the warm-up has the rate with which the first stage begins`() throws {
        let pacing = try Self.pacing(["1s:4/s", "1s:1/s"], warmUp: Self.second)
        expectEqual(Self.due(pacing, [0, 3, 4, 8, 9]), [0, 750, 1000, 2000, .max])
        expectEqual(pacing.end, 3 * Self.second)
        let stages = [0, 999, 1_000, 2_000].map { pacing.stage(at: $0 * 1_000_000) }
        expectEqual(stages, [nil, nil, 0, 1])
        for stage in ["1s:..4/s", "1s:0/s"] {
            #expect(throws: LoadError.self) { try Self.pacing([stage, "1s:1/s"], warmUp: 1) }
        }
    }

    @Test func `stages that send nothing, and too many, are refused`() {
        #expect(throws: LoadError.self) { try Self.pacing(["5s:0/s", "5s:..0/s"]) }
        let many = Array(repeating: "1s:1/s", count: 51)
        #expect(throws: LoadError.self) { try Self.pacing(many) }
        #expect(throws: Never.self) { try Self.pacing(Array(many.dropLast())) }
    }

    @Test func `a run with one rate has no stages`() {
        let pacing = Pacing(rate: 5, countLimit: nil, duration: Self.second, warmUp: 0)
        expectEqual(pacing.stage(at: 0), nil)
        expectEqual(pacing.stages, [])
    }

    @Test func `counts of stages are added up over the event loops`() {
        var one = Measurements(stageCount: 2)
        var other = Measurements(stageCount: 2)
        one.count(in: 0) { $0.sent += 3 }
        one.count(in: 1) { $0.record(5_000_000) }
        other.count(in: 1) { $0.record(7_000_000) }
        other.count(in: 1) { $0.backlogMax = 4 }
        // In the warm-up, and in a stage that is not there.
        other.count(in: nil) { $0.sent += 100 }
        other.count(in: 2) { $0.sent += 100 }
        one.add(other)
        expectEqual(one.stages.map(\.sent), [3, 0])
        expectEqual(one.stages.map(\.asExpected), [0, 2])
        expectEqual(one.stages[1].backlogMax, 4)
        expectEqual(one.stages[1].latencies?.totalCount, 2)
    }
}
