import Expectations
import Rules
import Testing

@testable import ConfigurationReading

/// `tracing`: the collector, what is recorded, and what a reload takes.
@Suite struct TracingSettingTests {
    private func loaded(_ tracing: String, files: [String: String] = [:]) -> LoadedConfiguration {
        load(
            """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            default: { origin: o, mode: off }
            \(tracing)
            """,
            files: files
        )
    }

    private func settings(_ tracing: String) throws -> TracingSettings {
        let loaded = loaded("tracing: { \(tracing) }")
        expectEqual(loaded.problems.map(\.text), [])
        return try #require(loaded.configuration).tracing
    }

    private static let endpoint = #"endpoint: "http://127.0.0.1:4318""#

    @Test func `without a collector nothing is recorded, and one that is named has defaults`()
        throws
    {
        let none = try #require(loaded("").configuration).tracing
        expectEqual(none, TracingSettings())
        expectEqual(none.endpoint, nil)
        let plain = try settings(Self.endpoint)
        expectEqual(plain.endpoint, "http://127.0.0.1:4318/v1/traces")
        expectEqual(plain.ratio.text, "1%")
        expectEqual(plain.keepsRefusals, false)
        expectEqual(plain.serviceName, "portcullis")
        expectEqual(plain.timeout, .seconds(10))
        expectEqual(plain.queueMax, 2_048)
        expectEqual(plain.headers + plain.resource, [])
    }

    @Test(arguments: [
        ("https://otel.example.com", "https://otel.example.com/v1/traces"),
        ("https://otel.example.com:4318/", "https://otel.example.com:4318/"),
        ("http://[::1]:4318/in/traces", "http://[::1]:4318/in/traces"),
        ("https://otel.example.com/v1/traces?a=b", "https://otel.example.com/v1/traces?a=b"),
    ])
    func `an endpoint without a path has OTLP's own`(text: String, endpoint: String) throws {
        expectEqual(try settings("endpoint: \"\(text)\"").endpoint, endpoint)
    }

    @Test(arguments: [
        "127.0.0.1:4318", "grpc://a:4317", "http://", "http://a b", "http://a/#x", "ftp://a",
        "https://user@a", "http://a:0", "http://a:65536", "",
    ])
    func `what is no address of HTTP is refused`(text: String) {
        let errors = loaded("tracing: { endpoint: \"\(text)\" }").errors.map(\.text)
        expectEqual(errors.count, 1, "\(errors)")
        let place = "p.yaml:4: tracing.endpoint: found \"\(text)\"; use http://host:4318"
        #expect(errors.first?.hasPrefix(place) == true, "\(errors)")
    }

    @Test func `all keys are kept as they are written`() throws {
        let read = try settings(
            """
            \(Self.endpoint), ratio: 2.5%, refusals: on, service_name: shop, timeout: 100ms,
              headers: ["X-Api-Key: a: b", "X_B: "], queue: 64,
              resource: ["deployment.environment.name=test", "k=a=b"]
            """
        )
        expectEqual(read.ratio, Share(percent: "2.5%"))
        expectEqual(read.keepsRefusals, true)
        expectEqual(read.serviceName, "shop")
        expectEqual(read.timeout, .milliseconds(100))
        expectEqual(read.headers, ["X-Api-Key: a: b", "X_B: "])
        expectEqual(read.queueMax, 64)
        expectEqual(read.resource, ["deployment.environment.name=test", "k=a=b"])
    }

    @Test(arguments: [
        ("ratio: 101%", "ratio: found \"101%\"; use a percentage, 0%…100%"),
        ("ratio: 0.01", "ratio: found \"0.01\""), ("refusals: yes", "refusals: found \"yes\""),
        ("queue: 63", "queue: found \"63\"; use a number, 64…65536"),
        ("queue: 65537", "queue: found \"65537\"; use a number, 64…65536"),
        ("timeout: 99ms", "timeout: found \"99ms\""), ("timeout: 61s", "timeout: found \"61s\""),
        ("headers: [\"X-A\"]", "headers[0]: found \"X-A\"; use fields such as"),
        ("headers: [\"X A: b\"]", "headers[0]: found \"X A: b\""),
        ("headers: [\"X-A: b\\nX-B: c\"]", "headers[0]: found "),
        ("resource: [a]", "resource[0]: found \"a\"; use attributes such as"),
        ("service_name: \"\"", "service_name: found \"\""),
        ("sampler: always", "sampler: found an unknown key; use endpoint, headers, ratio"),
    ])
    func `what can't be is refused with its place`(text: String, problem: String) {
        let errors = loaded("tracing: { \(Self.endpoint), \(text) }").errors.map(\.text)
        expectEqual(errors.count, 1, "\(errors)")
        #expect(errors.first?.hasPrefix("p.yaml:4: tracing.\(problem)") == true, "\(errors)")
    }

    @Test func `lists have an end`() {
        for (key, count, of) in [("headers", 17, "X-%: a"), ("resource", 33, "a%=b")] {
            let list = (0..<count).map { "\"\(of.replacing("%", with: "\($0)"))\"" }
            let text = "\(Self.endpoint), \(key): [\(list.joined(separator: ", "))]"
            let errors = loaded("tracing: { \(text) }").errors.map(\.text)
            expectEqual(errors.count, 1, "\(errors)")
            let most = "tracing.\(key): found more; use \(count - 1)"
            #expect(errors.first?.contains(most) == true, "\(errors)")
            let fewer = list.dropLast().joined(separator: ", ")
            expectEqual(
                loaded("tracing: { \(Self.endpoint), \(key): [\(fewer)] }").errors.map(\.text),
                []
            )
        }
    }

    @Test func `a reload takes every key, and tells no collector's secret`() throws {
        let old = try #require(loaded("tracing: { \(Self.endpoint) }").configuration)
        let new = try #require(
            loaded(
                """
                tracing: { endpoint: "https://b/t", ratio: 100%, refusals: on, service_name: b,
                  headers: ["X-Api-Key: hidden"], resource: [a=b], timeout: 1s, queue: 64 }
                """
            ).configuration
        )
        let changes = old.changes(to: new)
        let keys = [
            "endpoint", "headers", "ratio", "refusals", "service_name", "resource", "timeout",
            "queue",
        ]
        expectEqual(changes.map(\.keyPath), keys.map { "tracing.\($0)" })
        expectEqual(Set(changes.map(\.needs)), [.reload])
        #expect(!changes.contains { $0.text.contains("hidden") }, "\(changes.map(\.text))")
        let ended = new.changes(to: try #require(loaded("").configuration))
        #expect(ended.contains { $0.keyPath == "tracing.endpoint" }, "\(ended.map(\.text))")
    }
}
