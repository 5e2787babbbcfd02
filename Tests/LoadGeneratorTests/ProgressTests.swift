import Expectations
import Histogram
import Synchronization
import Testing

@testable import LoadGenerator

@Suite struct ProgressTests {
    private static func second(
        _ number: UInt64,
        latency: UInt64? = 2_000_000,
        stage: Int? = nil
    ) -> RunSecond {
        var interval = Interval()
        (interval.sent, interval.answered) = (1_200, 1_200)
        if let latency { interval.latencies.record(latency) }
        return RunSecond(
            interval,
            endsAt: number * 1_000_000_000,
            length: 1_000_000_000,
            stage: stage
        )
    }

    /// What a progress writes of some seconds.
    private static func written(
        _ style: Progress.Style,
        _ use: (inout Progress) -> Void
    ) -> [String] {
        let texts = Mutex<[String]>([])
        var progress = Progress(style) { text in texts.withLock { $0.append(text) } }
        use(&progress)
        return texts.withLock { $0 }
    }

    @Test func `the largest value has the full height, and a gap stands for none`() {
        expectEqual(Sparkline.text([0, 1, 2, 3, 4, 5, 6, 7]), "▁▂▃▄▅▆▇█")
        expectEqual(Sparkline.text([7, nil, 7, 0]), "█ █▁")
        expectEqual(Sparkline.text([0, 0]), "▁▁")
        expectEqual(Sparkline.text([UInt64.max, 1]), "█▁")
        expectEqual(Sparkline.text([UInt64?]()), "")
    }

    @Test func `the line never fills the terminal, whatever its width`() {
        let stages = ["1m:100..5000/s", "1m:..0/s"].compactMap(LoadStage.init)
        for columns in [1, 20, 60, 80, 120, 400] {
            var line = LiveLine(stages)
            for number in 1...100 {
                let second = Self.second(UInt64(number), stage: number / 61)
                let text = line.text(after: second, columns: columns)
                #expect(text.count < columns, "\(columns): \(text)")
            }
        }
    }

    @Test func `the line has the time, the stage, the last seconds and the figures`() {
        var line = LiveLine([LoadStage("1m:100..5000/s")].compactMap(\.self))
        _ = line.text(after: Self.second(1, latency: 1_000_000, stage: 0), columns: 200)
        _ = line.text(after: Self.second(2, latency: nil, stage: 0), columns: 200)
        let text = line.text(after: Self.second(3, latency: 8_000_000, stage: 0), columns: 200)
        #expect(
            text.hasPrefix("   3 s  stage 1/1 1m:100..5000/s  p99 ▂ █   1,200 answers/s"),
            "\(text)"
        )
        #expect(text.hasSuffix("wrong 0"), "\(text)")
    }

    @Test func `on a terminal each second replaces the line, and a fault is not lost in it`() {
        let texts = Self.written(.live { 100 }) { progress in
            progress.say("signing")
            progress.beat(Self.second(1))
            progress.report("the challenges endpoint: 500")
            progress.beat(Self.second(2))
            progress.end()
            progress.end()
        }
        expectEqual(texts.count, 5)
        expectEqual(texts.first, "signing\n")
        #expect(texts[1].hasPrefix("\r\u{1B}[K   1 s"))
        expectEqual(texts[2], "\r\u{1B}[Kthe challenges endpoint: 500\n")
        expectEqual(texts.last, "\n")
    }

    @Test func `elsewhere there are lines only at the times that were asked for`() {
        let seconds = { (progress: inout Progress) in
            for number in 1...7 { progress.beat(Self.second(UInt64(number), stage: 1)) }
            progress.end()
        }
        let lines = Self.written(.lines(every: 3), seconds)
        expectEqual(lines.map { String($0.prefix(15)) }, ["   3 s  stage 2", "   6 s  stage 2"])
        #expect(lines.allSatisfy { $0.hasSuffix("\n") && !$0.contains("\u{1B}") })
        let silent = Self.written(.silent) { progress in
            progress.say("signing")
            seconds(&progress)
            progress.report("a fault")
        }
        expectEqual(silent, ["a fault\n"])
    }
}
