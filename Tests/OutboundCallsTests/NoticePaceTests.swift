import Expectations
import Testing

@testable import OutboundCalls

@Suite struct NoticePaceTests {
    private static let minute: UInt64 = 60_000_000_000

    /// A macro can't call what changes a value.
    private func expect(
        _ untold: UInt64?,
        _ expected: UInt64?,
        _ place: SourceLocation = #_sourceLocation
    ) {
        expectEqual(untold, expected, sourceLocation: place)
    }

    @Test func `of events that are alike one a minute is told, and how many were not`() {
        var pace = NoticePace<String>()
        expect(pace.untold(of: "timeout", now: 0), 0)
        for second in 1...59 {
            expect(pace.untold(of: "timeout", now: UInt64(second) * 1_000_000_000), nil)
        }
        // Another kind is told at once.
        expect(pace.untold(of: "key-refused", now: 1), 0)
        expect(pace.untold(of: "timeout", now: Self.minute), 59)
        expect(pace.untold(of: "timeout", now: Self.minute + 1), nil)
        expect(pace.untold(of: "timeout", now: 2 * Self.minute), 1)
        expect(pace.untold(of: "timeout", now: 9 * Self.minute), 0)
    }
}
