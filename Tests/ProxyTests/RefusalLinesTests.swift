import Expectations
import Testing
import Verification

@testable import Proxy

@Suite struct RefusalLinesTests {
    @Test func `an address that floods leaves some lines, and the next one counts the others`() {
        var lines = RefusalLines()
        let rate = TokenRate(10, burst: 10)
        let flood = (0..<1_000).map { _ in lines.next(1 << 32, rate, now: 1) }
        #expect(flood.prefix(10).allSatisfy { $0 == 0 })
        #expect(flood.dropFirst(10).allSatisfy { $0 == nil })
        expectEqual(lines.next(2 << 32, rate, now: 1), 0)
        expectEqual(lines.next(1 << 32, rate, now: 1_000_000_001), 990)
        expectEqual(lines.take(), 990)
        expectEqual(lines.take(), 0)
    }
}
