import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// The spans that a collector gets, as OpenTelemetry's own messages read them.
    @Suite(.ofApple) struct Spans {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              sign: [method, target]
            """
        private static let signing = SigningForm.lines([.method, .target], headers: [])
        private static let request = SoftwareKey.Request(
            method: "GET",
            target: "/v1/orders?token=secret"
        )

        private func tracing(_ collector: SpanCollector, _ more: String) -> String {
            """
            tracing: { endpoint: "\(collector.endpoint)", service_name: shop-gateway,
              headers: ["X-Api-Key: 1234"], resource: ["deployment.environment.name=test"],
              \(more) }
            """
        }

        /// All spans of the calls; `nil` where the judge is not here.
        private func judged(
            _ calls: [(head: WireHead, content: Data)],
            _ scenario: Scenario
        ) throws -> [[String: Any]]? {
            guard let python = Scenario.tool("python3") else { return nil }
            let folder = scenario.folder.appending(path: "calls")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for (number, call) in calls.enumerated() {
                try call.content.write(to: folder.appending(path: "\(number).json"))
            }
            let judge = URL(filePath: #filePath).deletingLastPathComponent()
                .deletingLastPathComponent().appending(path: "Interoperability/spans.py").path
            let told = try scenario.run(python, [judge, folder.path])
            guard told.status != 77 else {
                print("spans: the judge is not tried: \(told.complained)")
                return nil
            }
            expectEqual(told.status, 0, "\(told.complained)")
            let spans = try JSONSerialization.jsonObject(with: Data(told.printed.utf8))
            return try #require(spans as? [[String: Any]])
        }

        private func text(_ span: [String: Any], _ name: String) -> String? {
            span[name] as? String ?? (span["attributes"] as? [String: Any])?[name] as? String
        }

        @Test func `a verified request has one trace through proxy, gateway and origin`() throws {
            let collector = try SpanCollector()
            defer { collector.end() }
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let more = tracing(collector, "ratio: 0%") + "\ntrusted_proxies: [127.0.0.0/8]"
            try scenario.configure(origin, rules: Self.rules, more: more)
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            let client = gateway.client()
            let trace = "0af7651916cd43dd8448eb211c80319c"
            let proof = key.proof(of: Self.request, signing: Self.signing)
            let names = [
                (name: "traceparent", value: "00-\(trace)-b7ad6b7169203331-01"),
                (name: "tracestate", value: "vendor=1"),
            ]
            try expectEqual(client.send(Self.request, proof, more: names).status, 200)
            let head = try origin.seen(1)[0].head
            let parent = try #require(head.value("traceparent"))
            #expect(parent.hasPrefix("00-\(trace)-") && parent.hasSuffix("-01"))
            expectEqual(head.all("tracestate"), ["vendor=1"])
            let line = try gateway.line(about: "/v1/orders")
            #expect(line["trace_id"] as? String == trace)

            let calls = try collector.calls(1)
            expectEqual(calls[0].head.value("x-api-key"), "1234")
            expectEqual(calls[0].head.value("content-type"), "application/json")
            let document = String(decoding: calls[0].content, as: UTF8.self)
            let secrets = proof.fields.map(\.value) + ["secret"]
            for secret in secrets where secret.utf8.count > 4 {
                #expect(!document.contains(secret))
            }
            guard let spans = try judged(calls, scenario) else { return }
            #expect(spans.allSatisfy { text($0, "trace") == trace })
            let server = try #require(spans.first { $0["kind"] as? Int == 2 })
            #expect(text(server, "parent") == "b7ad6b7169203331" && text(server, "name") == "GET")
            #expect(text(server, "portcullis.rule") == "orders")
            #expect(text(server, "portcullis.verdict") == "pass")
            #expect(text(server, "portcullis.platform") == "apple")
            #expect(text(server, "url.path") == "/v1/orders")
            let attributes = server["attributes"] as? [String: Any]
            #expect(attributes?["http.response.status_code"] as? Int == 200)
            let resource = try #require(server["resource"] as? [String: Any])
            #expect(resource["service.name"] as? String == "shop-gateway")
            #expect(resource["deployment.environment.name"] as? String == "test")
            #expect(
                text(server, "schema")?.hasPrefix("https://opentelemetry.io/schemas/1.") == true
            )
            let children = spans.filter { text($0, "parent") == text(server, "span") }
            expectEqual(children.count, spans.count - 1)
            #expect(children.contains { text($0, "name") == "portcullis.judge" })
            let call = try #require(children.first { $0["kind"] as? Int == 3 })
            expectEqual(
                text(call, "span"),
                parent.split(separator: "-").dropFirst(2).first.map(String.init)
            )
        }

        @Test func `a refused request has its span where that is asked for, and others have none`()
            throws
        {
            let collector = try SpanCollector()
            defer { collector.end() }
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let more = tracing(collector, "ratio: 0%, refusals: on")
            try scenario.configure(origin, rules: Self.rules, more: more)
            let gateway = try scenario.serve()
            let client = gateway.client()
            try expectEqual(client.send("GET", "/plain").status, 200)
            try expectEqual(client.send("GET", "/v1/orders").status, 401)
            #expect(try !origin.seen(1)[0].head.has("traceparent"))
            let calls = try collector.calls(1)
            let line = try gateway.line(about: "/v1/orders")
            let trace = try #require(line["trace_id"] as? String)
            #expect(String(decoding: calls[0].content, as: UTF8.self).contains(trace))
            guard let spans = try judged(calls, scenario) else { return }
            expectEqual(spans.count, 1)
            expectEqual(text(spans[0], "portcullis.reason"), "assertion-missing")
            expectEqual(text(spans[0], "parent"), "")
        }

        @Test func `a collector that fails or hangs costs no request anything, and no span`() throws
        {
            let collector = try SpanCollector([
                .status(429, fields: "Retry-After: 1\r\n"), .nothing, .status(503),
            ])
            defer { collector.end() }
            let stand = try Stand(more: tracing(collector, "ratio: 100%, timeout: 1s"), loops: 1)
            defer { stand.end() }
            let client = stand.gateway.client()
            try expectEqual(client.send("GET", "/plain").status, 200)
            let first = try collector.calls(1)[0].content
            for _ in 0..<20 { try expectEqual(client.send("GET", "/plain").status, 200) }
            // The same spans come again until they are taken, then the others.
            let calls = try collector.calls(5)
            for call in calls[..<4] { expectEqual(call.content, first) }
            try stand.gateway.waitUntil("the spans taken", stand.admin) {
                $0["spans_exported_total"] == 42
            }
            try expectEqual(Metrics(stand.admin)["spans_dropped_total"], 0)
            let told = stand.gateway.child.complained
            #expect(told.contains("takes no spans") && told.contains("takes spans again"))
            #expect(!told.contains("1234"))
            guard let spans = try judged(calls.suffix(2), stand.scenario) else { return }
            expectEqual(spans.count, 42)
        }

        @Test func `a reload begins, changes and ends what is recorded`() throws {
            let collector = try SpanCollector()
            defer { collector.end() }
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            let gateway = try scenario.serve()
            let client = gateway.client()
            var generation = 1
            /// Asks once under these settings; whether the request had a trace.
            func isRecorded(_ more: String) throws -> Bool {
                try scenario.configure(origin, rules: Self.rules, more: more)
                generation += 1
                gateway.child.signal(SIGHUP)
                _ = try gateway.child.wait(for: "reload") { _, complained in
                    complained.contains("generation \(generation)") ? true : nil
                }
                try expectEqual(client.send("GET", "/plain/\(generation)").status, 200)
                return try gateway.line(about: "/plain/\(generation)")["trace_id"] != nil
            }
            try expectEqual(client.send("GET", "/plain").status, 200)
            try expectEqual(isRecorded(tracing(collector, "ratio: 100%")), true)
            // Spans that wait go to the collector of the moment when they are sent.
            let first = try collector.calls(1)[0].content
            #expect(String(decoding: first, as: UTF8.self).contains("/plain/2"))
            try expectEqual(isRecorded(tracing(collector, "ratio: 0%")), false)
            let other = try SpanCollector()
            defer { other.end() }
            try expectEqual(isRecorded(tracing(other, "ratio: 100%")), true)
            let told = try other.calls(1)[0].content
            #expect(String(decoding: told, as: UTF8.self).contains("/plain/4"))
            try expectEqual(collector.calls(1).count, 1)
            try expectEqual(isRecorded(""), false)
            try expectEqual(gateway.stop(), 0)
        }
    }
}
