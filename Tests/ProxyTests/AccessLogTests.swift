import Expectations
import Testing

@testable import Proxy

@Suite struct AccessLogTests {
    /// They were counted, and nobody read the number.
    @Test func `lines beyond what may gather are dropped, and their number is handed over`() {
        var log = AccessLog()
        let text = String(repeating: "x", count: 1_000)
        let line = "{\"path\":\"\(text)\"}\n"
        let written = 1_100
        for _ in 0..<written {
            log.begin()
            log.member("path", text)
            log.end()
        }
        let kept = AccessLog.pendingMax / line.utf8.count
        #expect(kept < written)
        let first = log.take()
        expectEqual(first.dropped, UInt64(written - kept))
        expectEqual(first.lines, Array(String(repeating: line, count: kept).utf8))
        log.begin()
        log.end()
        let second = log.take()
        expectEqual(second.dropped, 0)
        expectEqual(second.lines, Array("{}\n".utf8))
    }
}
