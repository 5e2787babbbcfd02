import Expectations
import Testing

@testable import LoadGenerator

@Suite struct RunLimitsTests {
    /// The values that a run has, by the text of their subject.
    private static func exceeded(
        _ limits: RunLimits,
        _ values: [String: UInt64]
    ) -> [String] {
        limits.checks { values[$0.text] ?? 0 }.filter(\.isExceeded).map {
            "\($0.subject) is \($0.found), more than \($0.most)"
        }
    }

    private static func exceeded(_ text: String, _ values: [String: UInt64]) throws -> [String] {
        exceeded(try #require(RunLimits(text)), values)
    }

    @Test func `a run fails when it exceeds a limit, and not when it reaches it`() throws {
        let values: [String: UInt64] = ["p99": 20_000_000, "max": 31_200_000, "replays": 3]
        expectEqual(try Self.exceeded("p99>20ms,max>1s,replays>3", values), [])
        expectEqual(
            try Self.exceeded("p99>19ms,max>30ms,replays>2", values),
            [
                "p99 is 20.0 ms, more than 19ms", "max is 31.2 ms, more than 30ms",
                "replays is 3, more than 2",
            ]
        )
    }

    @Test func `a limit of a stage is about that stage alone`() throws {
        let values: [String: UInt64] = [
            "p99": 90_000_000, "stage 1: p99": 5_000_000, "stage 2: p99": 60_000_000,
            "stage 12: backlog": 4,
        ]
        expectEqual(try Self.exceeded("1:p99>5ms,12:backlog>4", values), [])
        expectEqual(
            try Self.exceeded("p99>100ms,1:p99>10ms,2:p99>50ms,12:backlog>3", values),
            [
                "stage 2: p99 is 60.0 ms, more than 50ms", "stage 12: backlog is 4, more than 3",
            ]
        )
    }

    @Test func `a limit of a stage that the run does not have is a mistake`() throws {
        let limits = try #require(RunLimits("2:p99>5ms,3:wrong>0"))
        expectEqual(limits.problem(withStages: 3), nil)
        let problem = limits.problem(withStages: 2)
        expectEqual(problem, "--fail-if names stage 3, and --stage gives 2 stages")
        expectEqual(RunLimits.standard.problem(withStages: 0), nil)
    }

    @Test func `wrong answers and failures fail a run unless a limit allows some`() throws {
        let values: [String: UInt64] = ["wrong": 4, "failed": 1]
        expectEqual(Self.exceeded(.standard, values).count, 2)
        expectEqual(try Self.exceeded("p50>1s", values).count, 2)
        expectEqual(try Self.exceeded("wrong>4", values), ["failed is 1, more than 0"])
        expectEqual(try Self.exceeded("wrong>4,failed>1", values), [])
        // What a stage allows, the whole run does not.
        expectEqual(try Self.exceeded("1:wrong>4,1:failed>1", values).count, 2)
    }

    @Test(arguments: [
        "", "p99", "p99>20", "p98>20ms", "wrong>1ms", "wrong>-1", "wrong>0,wrong>1", "p99<20ms",
        "p99>20ms,", "0:p99>1s", "51:p99>1s", ":p99>1s", "1:2:p99>1s", "-1:p99>1s", "a:wrong>0",
        "1:wrong>0,1:wrong>0",
    ])
    func `what is no limit is refused`(text: String) { expectEqual(RunLimits(text), nil) }
}
