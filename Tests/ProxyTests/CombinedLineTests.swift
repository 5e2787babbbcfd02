import Expectations
import Rules
import Testing

@testable import Proxy

@Suite struct CombinedLineTests {
    private func text(_ change: (inout CombinedLine) -> Void) -> String {
        var line = CombinedLine()
        line.client = "192.0.2.7"
        line.at = 784_111_777_000
        change(&line)
        var out: [UInt8] = []
        line.append(to: &out)
        return String(decoding: out, as: UTF8.self)
    }

    @Test func `a line is as other servers write it`() {
        let line = text { line in
            line.method = Array("GET".utf8)
            line.path = Array("/v1/orders".utf8)
            line.status = 200
            line.bytes = 17
            line.referer = Array("https://example.com/a?token=1".utf8)
            line.agent = Array("Shop/1.2 (iPhone)".utf8)
        }
        expectEqual(
            line,
            """
            192.0.2.7 - - [06/Nov/1994:08:49:37 +0000] \"GET /v1/orders HTTP/1.1\" 200 17 \
            \"https://example.com/a\" \"Shop/1.2 (iPhone)\"\n
            """
        )
    }

    @Test func `what a client sends ends neither a text nor a line`() {
        let line = text { line in
            line.method = Array("GET".utf8)
            line.path = Array("/\"\\".utf8) + [0xC3]
            line.agent = Array("a\" 200 1\r\nb\u{1B}".utf8)
        }
        expectEqual(line.split(separator: "\n").count, 1)
        #expect(line.contains(#""GET /\"\\\xc3 HTTP/1.1" 000 - "-" "a\" 200 1\x0d\x0ab\x1b""#))
    }

    @Test func `a head that could not be read has a line all the same`() {
        #expect(text { $0.status = 400 }.hasSuffix("] \"-\" 400 - \"-\" \"-\"\n"))
    }

    @Test(arguments: [0, 1, 250_000, 333_333, 1_000_000])
    func `a sample has its share of any number of requests`(millionths: Int) throws {
        let share = try #require(Share(millionths: millionths))
        var sampler = LogSampler()
        let taken = (0..<1000).filter { _ in sampler.takes(share) }.count
        expectEqual(taken, millionths / 1000)
    }
}
