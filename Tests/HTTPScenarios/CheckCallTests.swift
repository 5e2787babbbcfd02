import Expectations
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// What a listener with `decides: ext_authz_grpc` answers to calls, by their bytes.
    struct CheckCallTests {
        private static let path = "/envoy.service.auth.v3.Authorization/Check"
        private static let types = [("content-type", "application/grpc"), ("te", "trailers")]
        private static let rules = """
            trusted_proxies: [127.0.0.1/32]
            limits: { question_message: 64KiB }
            rules:
              - { id: no, match: { path: /no/** }, mode: deny }
              - { id: open, match: { path: /open }, mode: off, origin: shop }
            """

        /// Plays with a gateway whose default denies; its origin must see nothing.
        private func play(
            _ content: String = "",
            more: String = Self.rules,
            originOptions: String = "",
            _ act: (TestGateway, HTTP2Client) throws -> Void
        ) throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                listen: "address: 127.0.0.1:0, decides: ext_authz_grpc\(content)",
                fallback: "{ mode: deny }",
                originOptions: originOptions,
                more: more
            )
            defer { gateway.stop() }
            try act(gateway, try HTTP2Client(try gateway.connect()))
            #expect(origin.connections.isEmpty)
        }

        private static func call(
            _ client: HTTP2Client,
            _ message: CheckMessage
        ) throws -> CheckVerdict {
            let framed = CheckMessage.framed(message.bytes)
            let answer = try client.ask(HTTP2Client.post(path, types), framed)
            expectEqual(answer.status, 200)
            expectEqual(answer.value("content-type"), "application/grpc")
            expectEqual(answer.trailers.map(\.name), ["grpc-status"])
            expectEqual(answer.trailers.map(\.value), ["0"])
            return try CheckVerdict(answer.content)
        }

        @Test func `a call about what is forwarded unjudged is allowed`() throws {
            try play { _, client in
                for isRaw in [true, false] {
                    var message = CheckMessage("POST", "/open")
                    message.isRaw = isRaw
                    let verdict = try Self.call(client, message)
                    expectEqual(verdict.code, 0)
                    expectEqual(verdict.status, nil)
                    #expect(verdict.fields.isEmpty)
                    #expect(verdict.removed.contains("app-attest-verdict"))
                    #expect(!verdict.removed.contains("app-attest-assertion"))
                }
            }
        }

        @Test(arguments: [
            ("/no/x", 404, "no-rule"), ("/elsewhere", 404, "no-rule"),
            ("/open/../no/x", 400, "path-dot-segment"), ("/no%2fx", 400, "path-encoded-slash"),
            ("/open#x", 400, "target-fragment"), ("/op en", 400, "target-byte"),
            ("http://a.example/open", 400, "target-form"), ("open", 400, "target-form"),
        ])
        func `what would not be forwarded is denied with its refusal`(
            target: String,
            status: UInt64,
            reason: String
        ) throws {
            try play { _, client in
                let verdict = try Self.call(client, CheckMessage("GET", target))
                #expect(verdict.code != 0)
                expectEqual(verdict.status, status)
                let error = verdict.fields["app-attest-error"] ?? ""
                #expect(error.hasPrefix(reason), "\(error)")
                expectEqual(verdict.fields["content-type"], "application/problem+json")
                let text = String(decoding: verdict.content, as: UTF8.self)
                #expect(text.contains("\"reason\":\"\(reason)\""))
            }
        }

        /// A client chooses them.
        @Test(arguments: [
            ("upgrade", "h2c", "protocol-refused"), ("http2-settings", "AAM", "protocol-refused"),
            ("app_attest_verdict", "pass", "field-disguised"),
            ("x.original.url", "/no", "field-disguised"), ("host", "b.example", "host-differs"),
            ("content-type", "application/grpc", ""), ("user_id", "1", ""),
        ])
        func `fields count as in any question`(name: String, value: String, reason: String) throws {
            try play { _, client in
                let verdict = try Self.call(client, CheckMessage("POST", "/open", [(name, value)]))
                expectEqual(verdict.status, reason.isEmpty ? nil : 400)
                let error = verdict.fields["app-attest-error"] ?? ""
                #expect(error.hasPrefix(reason), "\(error)")
            }
        }

        /// All fields are in such a question, so the gateway can name what it would have deleted.
        @Test func `fields by which another request would run are named for removal`() throws {
            let misleading = [
                "x-http-method-override", "x-original-url", "x-forwarded-host",
                "x-forwarded-prefix", "forwarded", "proxy", "x-envoy-original-path",
                "x-middleware-subrequest",
            ]
            let own = [
                "x-forwarded-for", "x-forwarded-proto", "x-envoy-external-address", "x-request-id",
                "x-envoy-expected-rq-timeout-ms", "x-forwarded-client-cert", "x-note",
            ]
            let fields = (misleading + own).map { ($0, "192.0.2.7") }
            for kept in [[], ["x-original-url"]] {
                let option = kept.isEmpty ? "" : ", keep_fields: [\(kept[0])]"
                try play(originOptions: option) { _, client in
                    let verdict = try Self.call(client, CheckMessage("GET", "/open", fields))
                    expectEqual(verdict.status, nil)
                    expectEqual(Set(misleading).subtracting(verdict.removed), Set(kept))
                    #expect(verdict.removed.allSatisfy { !own.contains($0) })
                }
            }
        }

        @Test func `a message that names no request, or two, is denied`() throws {
            try play { _, client in
                var unclear = CheckMessage("GET", "/open")
                unclear.pseudo = [(":path", "/no/x")]
                let verdict = try Self.call(client, unclear)
                expectEqual(verdict.status, 400)
                expectEqual(verdict.fields["app-attest-error"], "question-unclear")
            }
        }

        @Test func `content is taken where the listener takes it`() throws {
            let message = CheckMessage("POST", "/open", content: Array("hi".utf8))
            try play { _, client in
                let verdict = try Self.call(client, message)
                expectEqual(verdict.status, 413)
                expectEqual(verdict.fields["app-attest-error"]?.hasPrefix("content-refused"), true)
            }
            try play(", content: whole") { _, client in
                let verdict = try Self.call(client, message)
                expectEqual(verdict.status, nil)
            }
        }

        @Test func `a call without a readable message ends by its own status`() throws {
            let message = CheckMessage("GET", "/open").bytes
            let framed = CheckMessage.framed(message)
            let calls: [(content: [UInt8], status: String)] = [
                ([], "3"), ([0], "3"), (Array(framed.dropLast()), "3"), (framed + [0], "3"),
                (framed + framed, "3"), ([1] + framed.dropFirst(), "3"),
                (CheckMessage.framed(Array(message.dropLast())), "3"),
                (CheckMessage.framed(Array(repeating: 0, count: 20)), "3"),
                (CheckMessage.framed(Array(repeating: 0, count: 70_000)), "8"),
            ]
            try play { _, client in
                for (content, status) in calls {
                    let answer = try client.ask(HTTP2Client.post(Self.path, Self.types), content)
                    expectEqual(answer.status, 200)
                    expectEqual(answer.value("grpc-status"), status, "\(content.count)")
                    #expect(answer.content.isEmpty)
                    try expectEqual(Self.call(client, CheckMessage("GET", "/open")).status, nil)
                }
            }
        }

        /// Clients of gRPC take a 404 for UNIMPLEMENTED, and a 403 for PERMISSION_DENIED.
        @Test func `any other request is answered by HTTP, and admits nothing`() throws {
            let framed = CheckMessage.framed(CheckMessage("GET", "/open").bytes)
            try play { gateway, client in
                for (path, fields) in [
                    ("/envoy.service.auth.v2.Authorization/Check", Self.types),
                    (Self.path + "?a", Self.types), ("/open", Self.types), (Self.path, []),
                    (Self.path, [Self.types[0]]), (Self.path, [("content-type", "text/plain")]),
                    ("/grpc.health.v1.Health/Check", Self.types),
                ] {
                    let answer = try client.ask(HTTP2Client.post(path, fields), framed)
                    #expect(answer.status == 404 || answer.status == 413, "\(path)")
                    expectEqual(answer.value("grpc-status"), nil)
                }
                try expectEqual(client.ask(HTTP2Client.get("/open")).status, 404)
                let old = try gateway.ask("GET /open HTTP/1.1\r\nHost: a\r\n\r\n")
                expectEqual(old.status, 404)
            }
            let strangers = Self.rules.replacing("127.0.0.1/32", with: "192.0.2.0/24")
            try play(more: strangers) { _, client in
                let answer = try client.ask(HTTP2Client.post(Self.path, Self.types), framed)
                expectEqual(answer.status, 403)
            }
        }

        /// A proxy gives up its call when its own client goes.
        @Test func `a trusted proxy may give up as many calls as it will`() throws {
            let limits = "limits: { http2: { resets: 20/m }, "
            try play(more: Self.rules.replacing("limits: { ", with: limits)) { _, client in
                for _ in 0..<100 {
                    let id = try client.open(HTTP2Client.post(Self.path, Self.types), ends: false)
                    try client.send(.reset, on: id, [0, 0, 0, 8])
                }
                try expectEqual(Self.call(client, CheckMessage("GET", "/open")).status, nil)
                #expect(client.goAways.isEmpty)
            }
        }

        @Test func `many calls come at once, byte by byte, and are given up`() throws {
            try play { _, client in
                let framed = CheckMessage.framed(CheckMessage("GET", "/open").bytes)
                let calls = try (0..<20).map { _ in
                    try client.open(HTTP2Client.post(Self.path, Self.types), ends: false)
                }
                for byte in framed.dropLast() {
                    for id in calls { try client.send([byte], on: id, ends: false) }
                }
                for id in calls.dropFirst(10) {
                    try client.send(.reset, on: id, [0, 0, 0, 8])
                }
                for id in calls.prefix(10) {
                    try client.send([framed[framed.count - 1]], on: id)
                    try expectEqual(CheckVerdict(try client.answer(id).content).status, nil)
                }
            }
        }
    }
}
