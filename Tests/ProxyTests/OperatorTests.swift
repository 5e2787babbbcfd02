import EventLoops
import Expectations
import Foundation
import Testing

@testable import Proxy
@testable import Services

/// The operators' listener, which is a proxy event loop that forwards nothing.
@Suite struct OperatorTests {
    private func get(_ target: String, _ fields: String = "Connection: close\r\n") -> String {
        "GET \(target) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n"
    }

    @Test func `metrics come as Prometheus asks for them`() async throws {
        let response = try await Loopback().exchange(get("/metrics"))
        expectEqual(response.statuses, [200])
        expectEqual(response.field("Content-Type"), "text/plain; version=0.0.4; charset=utf-8")
        expectEqual(response.field("Cache-Control"), "no-store")
        expectEqual(response.field("Date")?.hasSuffix(" GMT"), true)
        expectEqual(response.field("Content-Length"), String(response.body.utf8.count))
        expectEqual(response.body, AdminSnapshot.sample().metrics)
    }

    @Test(arguments: ["/status", "/status?pretty", "http://localhost/status"])
    func `the status comes as JSON`(target: String) async throws {
        let response = try await Loopback().exchange(get(target))
        expectEqual(response.statuses, [200])
        expectEqual(response.field("Content-Type"), "application/json")
        let parsed = try JSONSerialization.jsonObject(with: Data(response.body.utf8))
        #expect((parsed as? [String: Any])?["version"] as? String == "1.2.3")
    }

    @Test(arguments: ["/metrics/", "/metric", "/%6detrics", "/METRICS", "/.."])
    func `an unknown page is 404 and lists the pages`(target: String) async throws {
        let response = try await Loopback().exchange(get(target))
        expectEqual(response.statuses, [404])
        expectEqual(response.field("Content-Type"), "application/problem+json")
        let parsed = try JSONSerialization.jsonObject(with: Data(response.body.utf8))
        let problem = try #require(parsed as? [String: Any])
        #expect(problem["reason"] as? String == "page-unknown")
        let pages = [
            "/metrics", "/status", "/origins", "/rollout", "/healthz", "/readyz", "/", "/dashboard",
        ]
        #expect(problem["pages"] as? [String] == pages)
    }

    @Test(arguments: ["POST", "DELETE", "OPTIONS", "PURGE", "purge"])
    func `another method is 405 with Allow`(method: String) async throws {
        let text = "\(method) /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        let response = try await Loopback().exchange(text)
        expectEqual(response.statuses, [405])
        expectEqual(response.field("Allow"), "GET, HEAD")
    }

    @Test func `pipelined requests are answered one by one, in their order`() async throws {
        let text = get("/healthz", "") + get("/metrics", "") + get("/nothing", "") + get("/readyz")
        let response = try await Loopback().exchange(text + get("/healthz"))
        expectEqual(response.statuses, [200, 200, 404, 200])
        #expect(response.text.hasSuffix("\r\n\r\nready\n"))
    }

    @Test func `a connection goes on after an answer`() async throws {
        let response = try await Loopback().exchange(get("/healthz", "")) { _, client in
            client.progressed = { [unowned client] bytes in
                guard bytes.suffix(3).elementsEqual("ok\n".utf8) else { return }
                client.progressed = nil
                client.send("GET /readyz HTTP/1.0\r\n\r\n")
            }
        }
        expectEqual(response.statuses, [200, 200])
    }

    @Test func `HEAD brings the head that GET would, and no content`() async throws {
        let text = "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        let response = try await Loopback().exchange(text)
        expectEqual(response.statuses, [200])
        let count = AdminSnapshot.sample().metrics.utf8.count
        expectEqual(response.field("Content-Length"), String(count))
        #expect(response.body.isEmpty)
    }

    @Test(arguments: ["Content-Length: 5", "Transfer-Encoding: chunked"])
    func `content is refused and ends the connection`(framing: String) async throws {
        let text = get("/metrics", framing + "\r\n") + "5\r\nhello\r\n0\r\n\r\n" + get("/healthz")
        let response = try await Loopback().exchange(text)
        expectEqual(response.statuses, [413])
        expectEqual(response.field("Connection"), "close")
    }

    @Test func `a content length of 0 is no content`() async throws {
        let text = get("/healthz", "Content-Length: 0\r\n") + get("/healthz")
        try await expectEqual(Loopback().exchange(text).statuses, [200, 200])
    }

    @Test(arguments: [
        ("no version", 400), ("line feeds alone", 400), ("no host", 400), ("another method", 501),
        ("another version", 505), ("a TLS record", 400), ("a long target", 414),
        ("a long head", 431), ("two lengths", 400),
    ])
    func `a malformed head is refused and ends the connection`(what: String, status: Int)
        async throws
    {
        let heads = [
            "no version": "GET /metrics\r\n\r\n",
            "line feeds alone": "GET /metrics HTTP/1.1\n\n",
            "no host": "GET /metrics HTTP/1.1\r\n\r\n",
            "another method": "CONNECT a:1 HTTP/1.1\r\n\r\n",
            "another version": "GET /metrics HTTP/2.0\r\n\r\n",
            "a TLS record": "\u{16}\u{3}\u{1}\r\n\r\n",
            "a long target": "GET /\(String(repeating: "a", count: 1100)) HTTP/1.1\r\n\r\n",
            "a long head": get("/", "X: \(String(repeating: "a", count: 9000))\r\n"),
            "two lengths": get("/", "Content-Length: 1\r\nContent-Length: 1\r\n"),
        ]
        let response = try await Loopback().exchange(try #require(heads[what]) + get("/healthz"))
        expectEqual(response.statuses, [status])
        expectEqual(response.field("Connection"), "close")
        expectEqual(response.field("Content-Type"), "application/problem+json")
    }

    @Test func `an HTTP/1.0 client is served, and kept when it asks for that`() async throws {
        let text =
            "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n"
        let response = try await Loopback().exchange(text)
        expectEqual(response.statuses, [200, 200])
        expectEqual(response.field("Connection"), "keep-alive")
    }

    @Test func `a client that ended its direction gets its answers`() async throws {
        let response = try await Loopback().exchange(get("/metrics", "")) { _, client in
            client.endsOutput = true
        }
        expectEqual(response.statuses, [200])
    }

    @Test func `a draining gateway and a degraded store are not ready, yet healthy`() async throws {
        let snapshot = AdminSnapshot.sample(
            isDegraded: true,
            drainState: .draining(left: .seconds(1))
        )
        let loopback = Loopback(source: ReadySource(snapshot: snapshot))
        let response = try await loopback.exchange(get("/readyz", "") + get("/healthz"))
        expectEqual(response.statuses, [503, 200])
        #expect(response.text.contains(#""reason":"draining""#))
        #expect(response.text.contains(#""store-degraded""#))
    }

    @Test func `a gathering that takes too long is 503, and harms no other request`() async throws {
        let text = get("/metrics", "") + get("/healthz", "") + get("/readyz")
        let response = try await Loopback(source: LateSource()).exchange(text)
        expectEqual(response.statuses, [503, 200, 503])
        #expect(response.text.contains(#""reason":"gather-timeout""#))
        expectEqual(response.field("Retry-After"), "1")
    }

    @Test func `an idle connection is closed without a word`() async throws {
        var timeouts = Timeouts.operators
        timeouts.handshake = 1
        try await expectEqual(Loopback(timeouts: timeouts).exchange("").text, "")
    }

    @Test func `a head that does not end in time is 408`() async throws {
        var timeouts = Timeouts.operators
        timeouts.head = 1
        let response = try await Loopback(timeouts: timeouts).exchange("GET /metr")
        expectEqual(response.statuses, [408])
        expectEqual(response.field("Connection"), "close")
    }

    @Test func `one connection too many is closed at once`() async throws {
        var limits = ProxyLimits.operators
        limits.connectionsMax = 0
        try await expectEqual(Loopback(limits: limits).exchange(get("/healthz")).text, "")
    }

    @Test func `a large answer waits for its reader, and comes in full`() async throws {
        let length = 12_000_000
        let snapshot = AdminSnapshot.sample(
            lastReloadError: String(repeating: "x", count: length)
        )
        let loopback = Loopback(source: ReadySource(snapshot: snapshot))
        let response = try await loopback.exchange(get("/status"))
        #expect(response.body.utf8.count > length)
        expectEqual(response.field("Content-Length"), String(response.body.utf8.count))
    }
}
