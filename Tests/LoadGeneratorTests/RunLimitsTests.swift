import Expectations
import Testing

@testable import LoadGenerator

@Suite struct RunLimitsTests {
    private static func exceeded(_ text: String, _ values: [String: UInt64]) throws -> [String] {
        try #require(RunLimits(text)).exceeded { values[$0] ?? 0 }
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

    @Test func `wrong answers and failures fail a run unless a limit allows some`() throws {
        let values: [String: UInt64] = ["wrong": 4, "failed": 1]
        expectEqual(RunLimits.standard.exceeded { values[$0] ?? 0 }.count, 2)
        expectEqual(try Self.exceeded("p50>1s", values).count, 2)
        expectEqual(try Self.exceeded("wrong>4", values), ["failed is 1, more than 0"])
        expectEqual(try Self.exceeded("wrong>4,failed>1", values), [])
    }

    @Test(arguments: [
        "", "p99", "p99>20", "p98>20ms", "wrong>1ms", "wrong>-1", "wrong>0,wrong>1", "p99<20ms",
        "p99>20ms,",
    ])
    func `what is no limit is refused`(text: String) { expectEqual(RunLimits(text), nil) }
}
