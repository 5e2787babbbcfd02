import Expectations
import HTTPWire
import Testing

@testable import LoadGenerator

@Suite struct TextTests {
    @Test(arguments: [
        ("http://127.0.0.1:8080/v1/orders?dry=1", "127.0.0.1", 8080, "/v1/orders?dry=1", false),
        ("https://shop.example.com", "shop.example.com", 443, "/", true),
        ("http://[::1]:81/a", "::1", 81, "/a", false),
        ("http://[::1]?b", "::1", 80, "/?b", false),
    ])
    func `a URL says where to connect and what to ask for`(
        text: String,
        host: String,
        port: Int,
        target: String,
        isSecure: Bool
    ) throws {
        let url = try #require(LoadURL(text))
        expectEqual(url.host, host)
        expectEqual(Int(url.port), port)
        expectEqual(url.target, target)
        expectEqual(url.isSecure, isSecure)
    }

    @Test(arguments: [
        "", "127.0.0.1/a", "ftp://a/", "http:///a", "http://a:0/", "http://a:65536/", "http://a:b/",
        "http://me@a/", "http://a/#part", "http://a/b c", "http://:80/",
    ])
    func `what is no such URL is refused`(text: String) {
        expectEqual(LoadURL(text), nil)
    }

    @Test func `times carry a unit`() {
        expectEqual(LoadTime("250ms")?.nanoseconds, 250_000_000)
        expectEqual(LoadTime("5m")?.nanoseconds, 300_000_000_000)
        for text in ["", "5", "s", "5 s", "-5s", "1.5s", "99999999999h", "1001h"] {
            expectEqual(LoadTime(text), nil, "\(text)")
        }
    }

    @Test func `content has one size, or some between two`() {
        expectEqual(ContentPlan("200")?.sizes, [200])
        expectEqual(ContentPlan("0..2")?.sizes, [0, 1, 2])
        let many = ContentPlan("100..100000")?.sizes ?? []
        expectEqual(many.count, 16)
        expectEqual(many.first, 100)
        #expect(many.allSatisfy { (100...100_000).contains($0) })
        for text in ["", "..", "5..2", "-1", "1...5", "a", "1..", "9999999999"] {
            expectEqual(ContentPlan(text), nil, "\(text)")
        }
    }

    @Test(arguments: [
        (612_300, "612 µs"), (1_240_000, "1.24 ms"), (999_499, "999 µs"), (999_700, "1.00 ms"),
        (12_400_000_000, "12.4 s"), (0, "0.00 µs"), (99_960_000, "100 ms"),
    ])
    func `latencies have three digits and a unit`(nanoseconds: UInt64, text: String) {
        expectEqual(Figures.latency(nanoseconds), text)
    }

    @Test func `counts have commas, and numbers the places they are given`() {
        expectEqual(
            [0, 999, 1_000, 1_234_567].map(Figures.count),
            ["0", "999", "1,000", "1,234,567"]
        )
        expectEqual(Figures.fixed(-0.004, 2), "0.00")
        expectEqual(Figures.fixed(-1.256, 2), "-1.26")
        expectEqual(Figures.fixed(.infinity, 2), "–")
        expectEqual(Figures.bytes(1_500_000_000), "1.40 GiB")
    }

    @Test(arguments: [("86399", 86_399), ("7", 7), ("99999999999999999999", 86_400)])
    func `a wait is read as the gateway gives it, up to a day`(text: String, seconds: Int) throws {
        let bytes = Array("HTTP/1.1 429 -\r\nRetry-After: \(text)\r\n\r\n".utf8)
        var head = ResponseHead()
        try head.read(bytes.span, to: .get, upgradeSent: false, limits: HeadLimits())
        var answer = Answer()
        answer.read(head.fields, bytes.span)
        expectEqual(answer.retryAfter, seconds)
    }

    /// Another server than the gateway had the terminal obey it.
    @Test func `a reason ends before a byte that a terminal could obey, or after 64 bytes`() {
        var answer = Answer()
        answer.status = 401
        for byte in [0x07, 0x1B, 0x0A, 0x7F, 0x80, 0x9B, 0xE2] as [UInt8] {
            answer.content = Array(#"{"reason":"gone"#.utf8) + [byte] + Array(#"[31m"}"#.utf8)
            expectEqual(answer.text, "401 gone")
        }
        answer.content = Array(#"{"reason":"\#(String(repeating: "a", count: 9_000))"}"#.utf8)
        expectEqual(answer.text.count, 68)
    }

    @Test func `a reason is found in a problem document, or none`() {
        var answer = Answer()
        answer.status = 401
        answer.content = Array(#"{"status":401,"reason":"counter-replayed","next":"x"}"#.utf8)
        expectEqual(answer.text, "401 counter-replayed")
        for text in ["", "<html>", #"{"reason":"#, #"{"reasons":"a"}"#] {
            answer.content = Array(text.utf8)
            expectEqual(answer.text, "401")
        }
        answer.content = Array(#"{"reason":"cut off"#.utf8)
        expectEqual(answer.text, "401 cut off")
    }
}
