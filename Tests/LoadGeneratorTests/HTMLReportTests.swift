import Expectations
import Histogram
import Testing

@testable import LoadGenerator

@Suite struct HTMLReportTests {
    @Test func `no text becomes markup, and no value ends its attribute`() {
        var out = HTMLWriter()
        let hostile = "</td><script>alert('x')</script>\" onload=\"a & b"
        out.element("td", ["title": hostile], text: hostile)
        let escaped =
            "&lt;/td&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"
            + "&quot; onload=&quot;a &amp; b"
        expectEqual(out.html, "<td title=\"\(escaped)\">\(escaped)</td>")
    }

    @Test func `control characters are replaced, and other letters stay`() {
        expectEqual(
            HTMLWriter.escaped("a\u{0}b\u{1B}[Kc\u{85}\n"),
            "a\u{FFFD}b\u{FFFD}[Kc\u{FFFD}\n"
        )
        expectEqual(HTMLWriter.escaped("µs – ✗ 日"), "µs – ✗ 日")
    }

    @Test func `elements are nested and ended`() {
        var out = HTMLWriter()
        out.element("p", ["class": "a"]) { out in
            out.text("1 < 2")
            out.void("br", [:])
            out.element("b", text: "")
        }
        expectEqual(out.html, "<p class=\"a\">1 &lt; 2<br><b></b></p>")
    }

    @Test(arguments: [
        (0, 1), (0.3, 0.3), (1, 1), (1.01, 2), (2.5, 3), (7, 8), (9, 10), (1_001, 2_000),
        (5_000_000, 5_000_000),
    ])
    func `an axis ends at a round number that is not below the value`(value: Double, top: Double) {
        #expect(abs(Plot.roundedUp(value) - top) < top / 1e6)
    }

    @Test func `each latency is in one bar, the lowest and the highest too`() {
        var latencies = Measurements.latencies()
        for value: UInt64 in [50_000, 50_000, 400_000, 30_000_000, 2_000_000_000] {
            latencies.record(value)
        }
        let bars = LatencyBars(latencies)
        expectEqual(bars.bars.reduce(0) { $0 + $1.count }, 5)
        expectEqual(bars.bars.first?.count, 2)
        expectEqual(bars.bars.last?.count, 1)
        #expect(bars.place(of: 50_000) < 0.05)
        #expect(bars.place(of: 2_000_000_000) > 0.95)
        #expect(bars.place(of: 1) == 0 && bars.place(of: .max) == 1)
    }

    @Test func `a run without an answer, or with one, has a picture or none`() {
        expectEqual(LatencyBars(Measurements.latencies()).bars, [])
        var latencies = Measurements.latencies()
        latencies.record(0)
        let bars = LatencyBars(latencies).bars
        expectEqual(bars.reduce(0) { $0 + $1.count }, 1)
        #expect(bars.allSatisfy { $0.to > $0.from })
    }

    private static func seconds(_ count: Int, latency: (Int) -> UInt64?) -> [RunSecond] {
        (1...count).map { number in
            var interval = Interval()
            (interval.answered, interval.deviations, interval.failures) = (10, 1, 2)
            if let value = latency(number) { interval.latencies.record(value) }
            let end = UInt64(number) * 1_000_000_000
            return RunSecond(interval, endsAt: end, length: 1_000_000_000, stage: nil)
        }
    }

    @Test func `a long run has no more columns than can be seen, and loses no fault`() {
        let line = TimeLine(Self.seconds(5_000) { _ in 1_000 })
        #expect(line.columns.count <= TimeLine.columnsMax)
        expectEqual(line.columns.reduce(0) { $0 + $1.faults }, 15_000)
        expectEqual(line.columns.reduce(0) { $0 + $1.asExpected }, 45_000)
        expectEqual(line.columns.last?.to, 5_000)
    }

    @Test func `of seconds in one column the highest latency counts`() {
        // Three seconds make a column.
        let line = TimeLine(Self.seconds(600) { $0 == 2 ? 9_000_000 : $0 > 300 ? nil : 1_000_000 })
        #expect(line.columns[0].p99 ?? 0 > 8_900_000)
        expectEqual(line.columns[0].rate, 9)
        expectEqual(line.columns.last?.p99, nil)
    }

    @Test func `outcomes are told apart up to a number, and none is lost`() {
        var counts = OutcomeCounts()
        for number in 0..<150 {
            var answer = Answer()
            answer.status = 400
            answer.content = Array(#"{"reason":"r\#(number)"}"#.utf8)
            for _ in 0...number % 2 {
                counts.note(RequestOutcome(.good, answer, isAsExpected: false))
            }
        }
        expectEqual(counts.sorted.count, OutcomeCounts.kindsMax)
        expectEqual(counts.unlisted, 75)
        expectEqual(counts.sorted.reduce(0) { $0 + $1.count } + counts.unlisted, 225)
        counts.add(counts)
        expectEqual(counts.sorted.count, OutcomeCounts.kindsMax)
        expectEqual(counts.sorted.reduce(0) { $0 + $1.count } + counts.unlisted, 450)
    }

    @Test func `an outcome is a status and a reason, or why there is none`() {
        var answer = Answer()
        answer.status = 200
        expectEqual(RequestOutcome(.good, answer, isAsExpected: true).text, "200")
        answer.status = 401
        answer.content = Array(#"{"reason":"counter-replayed"}"#.utf8)
        expectEqual(RequestOutcome(.good, answer, isAsExpected: true).text, "401 counter-replayed")
        expectEqual(RequestOutcome(.good, .responseTimeout).text, "response-timeout")
        let long = String(repeating: "x", count: 500)
        answer.content = Array(#"{"reason":"\#(long)"}"#.utf8)
        expectEqual(RequestOutcome(.good, answer, isAsExpected: true).reason.count, 64)
    }
}
