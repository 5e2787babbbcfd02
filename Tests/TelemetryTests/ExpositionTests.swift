import Expectations
import Testing

@testable import Telemetry

struct ExpositionTests {
    private static func exemplar(_ text: String, _ value: UInt64, at: Int64) -> Exemplar {
        var name = InlineArray<64, UInt8>(repeating: 0)
        for (place, byte) in text.utf8.enumerated() { name[place] = byte }
        return Exemplar(.requestID, name, count: text.utf8.count, value: value, at: at)
    }

    private func tally(_ exemplars: Exemplar...) -> Tally {
        var tally = Tally(ruleCount: 2, verdictSlots: 1)
        for exemplar in exemplars { tally.addRequest(exemplar, rule: 1, status: 404) }
        return tally
    }

    private func page(_ tally: Tally, _ format: Exposition.Format) -> [String] {
        var out = Exposition(format)
        out.counters(of: tally)
        out.distributions(of: tally)
        out.end()
        return out.text.split(separator: "\n").map(String.init)
    }

    @Test func `OpenMetrics names a counter's family without its suffix, and has an end`() {
        let lines = page(tally(), .openMetrics)
        #expect(lines.contains("# TYPE portcullis_requests counter"))
        #expect(lines.contains("portcullis_requests_total 0"))
        #expect(lines.last == "# EOF" && lines.filter { $0 == "# EOF" }.count == 1)
        let plain = page(tally(), .prometheus)
        #expect(plain.contains("# TYPE portcullis_requests_total counter"))
        #expect(!plain.contains("# EOF"))
    }

    @Test func `a bucket has the last request that fell into it, in OpenMetrics alone`() {
        var merged = tally(Self.exemplar("old", 3_000_000, at: 1_000))
        merged.merge(tally(Self.exemplar("new", 3_100_000, at: 2_500)))
        merged.merge(tally(Self.exemplar("older", 3_000_000, at: 500)))
        let shown = page(merged, .openMetrics).filter { $0.contains("request_id") }
        expectEqual(shown.count, 1)
        let bucket = #"portcullis_request_seconds_bucket{le="0.004194303"} 3 "#
        #expect(shown[0].hasPrefix(bucket + ##"# {request_id="new"} 0.0031"##))
        #expect(shown[0].hasSuffix(" 2.5"))
        #expect(!page(merged, .prometheus).contains { $0.contains("request_id") })
    }

    @Test func `a rule's times have the last recorded request of each of their own buckets`() {
        var tally = Tally(ruleCount: 2, verdictSlots: 1)
        expectEqual(tally.exemplars(.judging, rule: 1) == nil, true)
        // 2^14…2^16 nanoseconds are a bucket of judging.
        for (name, value, at) in [("a", 20_000, 1), ("b", 60_000, 2), ("c", 70_000, 3)] {
            tally.add(.judging, rule: 1, nanoseconds: UInt64(value))
            let kept = Self.exemplar(name, UInt64(value), at: Int64(at) * 1_000)
            tally.keep(kept, of: .judging, rule: 1)
            tally.keep(kept, of: .judging, rule: 2)
        }
        var other = Tally(ruleCount: 2, verdictSlots: 1)
        other.keep(Self.exemplar("older", 69_000, at: 1), of: .judging, rule: 1)
        other.keep(Self.exemplar("far", .max, at: 1), of: .waiting, rule: 0)
        tally.merge(other)
        func shown(_ time: RuleTime, _ rule: Int) -> [String] {
            var out = Exposition(.openMetrics)
            out.histogram(
                "x",
                tally.times(time, rule: rule),
                unit: 1e-9,
                lines: HistogramLines(
                    time.buckets,
                    exemplars: tally.exemplars(time, rule: rule)
                )
            )
            return out.text.split(separator: "\n").filter { $0.contains(" # ") }.map {
                $0.split(separator: " ").dropLast(2).joined(separator: " ")
            }
        }
        let bounds = (first: "6.5535e-05", second: "0.000262143")
        expectEqual(
            shown(.judging, 1),
            [
                #"portcullis_x_bucket{le="\#(bounds.first)"} 2 # {request_id="b"}"#,
                #"portcullis_x_bucket{le="\#(bounds.second)"} 3 # {request_id="c"}"#,
            ]
        )
        expectEqual(
            shown(.waiting, 0),
            [#"portcullis_x_bucket{le="+Inf"} 0 # {request_id="far"}"#]
        )
        expectEqual(shown(.origin, 1), [])
        tally.renumber([1, nil])
        expectEqual(shown(.judging, 0).count, 2)
        expectEqual(shown(.waiting, 1) + shown(.waiting, 0), [])
    }

    @Test func `a time beyond all bounds falls into the last bucket`() {
        let shown = page(tally(Self.exemplar("slow", .max, at: 0)), .openMetrics)
        let line = shown.first { $0.contains(#"="slow""#) }
        expectEqual(line?.hasPrefix(#"portcullis_request_seconds_bucket{le="+Inf"} 1 # "#), true)
    }

    @Test func `requests are counted by rule and class of status`() {
        var tally = tally(Self.exemplar("a", 1, at: 0), Self.exemplar("b", 2, at: 0))
        tally.addRequest(Self.exemplar("c", 5, at: 0), rule: 7, status: 200)
        tally.addRequest(Self.exemplar("d", 5, at: 0), rule: 0, status: 0)
        tally.addRequest(Self.exemplar("e", 5, at: 0), rule: nil, status: 599)
        #expect(
            tally.responses(rule: 1, class: 4) == 2 && tally.times(.request, rule: 1).count == 2
        )
        #expect(
            tally.times(.request, rule: 0).count == 1 && tally.times(.request, rule: 7).count == 0
        )
        #expect((1...5).allSatisfy { tally.responses(rule: 0, class: $0) == 0 })
        #expect(tally.responses(rule: 1, class: 0) == 0 && tally.responses(rule: 1, class: 6) == 0)
        tally.renumber([1, nil])
        #expect(tally.responses(rule: 0, class: 4) == 2 && tally.responses(rule: 1, class: 4) == 0)
        var small = Tally(ruleCount: 1, verdictSlots: 1)
        small.merge(tally)
        small.merge(tally)
        #expect(
            small.responses(rule: 0, class: 4) == 4 && small.times(.request, rule: 0).count == 4
        )
    }
}
