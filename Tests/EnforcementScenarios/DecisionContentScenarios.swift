import Cryptography
import Expectations
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

// Requests with content, where the asking proxy sends it: the application executes what was signed,
// once, and nothing else.
extension Scenarios.Decisions {
    private typealias Fields = [(name: String, value: String)]

    private static let senders = DecidingProxy.allCases.filter(\.sendsContent)
    private static let paths = ["/pay/1", "/streamed/1"]
    private static let wholeSigning = SigningForm.lines(
        [.method, .target, .body, .challenge],
        headers: []
    )

    private static func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
    }

    /// Made once: in a debug build a byte takes longer to make than to send.
    private static let large = bytes(2 << 20)

    /// A request in one of the two framings of HTTP/1.1.
    private static func raw(
        _ method: String,
        _ target: String,
        _ fields: Fields,
        _ content: [UInt8],
        isChunked: Bool,
        trailers: String = ""
    ) -> [UInt8] {
        guard isChunked else {
            let head = HTTPClient.head(method, target, fields)
            return Array("\(head)Content-Length: \(content.count)\r\n\r\n".utf8) + content
        }
        var all = Array(HTTPClient.head(method, target, fields).utf8)
        all += Array("Transfer-Encoding: chunked\r\n\r\n".utf8)
        for piece in [content.prefix(content.count / 3), content.dropFirst(content.count / 3)]
        where !piece.isEmpty {
            all += Array((String(piece.count, radix: 16) + "\r\n").utf8) + piece
            all += Array("\r\n".utf8)
        }
        return all + Array("0\r\n\(trailers)\r\n".utf8)
    }

    /// Method, framing and more fields of requests with content.
    private static let ways: [(method: String, isChunked: Bool, more: Fields)] = [
        ("POST", false, []), ("POST", true, []), ("GET", false, []),
        ("POST", false, [("Expect", "100-continue")]),
        ("PUT", true, [("Content-Encoding", "gzip")]),
    ]

    @Test(arguments: senders)
    func `content that was signed reaches the application once`(proxy: DecidingProxy) throws {
        try play(proxy) { stand in
            var count = 0
            for (path, size) in [("/pay/1", 5), ("/pay/2", 40_000), ("/streamed/1", 40_000)] {
                for (method, isChunked, more) in Self.ways {
                    let content = Self.bytes(size)
                    let (request, proof) = try stand.signed(
                        method,
                        path,
                        content,
                        by: Self.wholeSigning
                    )
                    let fields = proof.fields + more
                    let raw = Self.raw(method, path, fields, content, isChunked: isChunked)
                    let remark: Comment = "\(method) \(path) \(isChunked) \(more)"
                    let answer = try stand.client.send(raw: raw)
                    expectEqual(answer.status, 200, remark)
                    count += 1
                    let seen = try stand.last(count, remark)
                    expectEqual(seen.digest, SHA256.digest(of: content), remark)
                    #expect(seen.isComplete, remark)
                    expectEqual(seen.head.value("App-Attest-Verdict"), "pass", remark)
                    let again = try stand.client.send(request, proof)
                    expectEqual(again.status, 401, remark)
                }
                let (none, proof) = try stand.signed("POST", path, by: Self.wholeSigning)
                try expectEqual(stand.client.send(none, proof).status, 200)
                count += 1
            }
            expectEqual(stand.seen.count, count)
        }
    }

    @Test(arguments: senders)
    func `content that was not signed does not reach the application`(
        proxy: DecidingProxy
    ) throws {
        try play(proxy) { stand in
            let content = Self.bytes(20_000)
            var flipped = content
            flipped[19_999] ^= 1
            let others = [
                flipped, Array(content.dropLast()), Array(content.prefix(10)), content + content,
                content + [0], content + Self.bytes(100_000), [],
            ]
            for (path, isChunked) in Self.paths.flatMap({ [($0, false), ($0, true)] }) {
                for (index, other) in others.enumerated() {
                    let proof = try stand.signed("POST", path, content, by: Self.wholeSigning).1
                    let raw = Self.raw("POST", path, proof.fields, other, isChunked: isChunked)
                    let answer = try stand.client.send(raw: raw)
                    #expect(answer.status >= 400, "\(path) \(isChunked) \(index)")
                }
                for other in [[1], Self.bytes(100_000)] {
                    let proof = try stand.signed("POST", path, by: Self.wholeSigning).1
                    let raw = Self.raw("POST", path, proof.fields, other, isChunked: isChunked)
                    let answer = try stand.client.send(raw: raw)
                    #expect(answer.status >= 400, "\(path) \(isChunked) where none was signed")
                }
            }
            #expect(stand.seen.isEmpty)
            // Where a rule observes, the application learns that it is not what was signed.
            let proof = try stand.signed("POST", "/seen/1", content, by: Self.wholeSigning).1
            let raw = Self.raw("POST", "/seen/1", proof.fields, flipped, isChunked: true)
            try expectEqual(stand.client.send(raw: raw).status, 200)
            try expectEqual(stand.last(1).head.value("App-Attest-Verdict"), "refuse")
        }
    }

    @Test(arguments: senders)
    func `content over the proxy's limit is not judged by its beginning`(
        proxy: DecidingProxy
    ) throws {
        try play(proxy) { stand in
            let content = Self.large
            for (path, isChunked) in Self.paths.flatMap({ [($0, false), ($0, true)] }) {
                let proof = try stand.signed("POST", path, content, by: Self.wholeSigning).1
                let raw = Self.raw("POST", path, proof.fields, content, isChunked: isChunked)
                // A proxy may answer, and close, before it has read all of it.
                let status = (try? stand.client.send(raw: raw))?.status
                stand.client.close()
                #expect(status ?? 413 >= 400, "\(path) \(isChunked)")
            }
            #expect(stand.seen.isEmpty)
            let proof = try stand.signed("POST", "/pay/1", [1], by: Self.wholeSigning)
            try expectEqual(stand.client.send(proof.0, proof.1).status, 200)
        }
    }

    @Test(arguments: senders)
    func `what a client says of its content does not count`(proxy: DecidingProxy) throws {
        try play(proxy) { stand in
            let claims: Fields = [
                ("x-envoy-auth-partial-body", "false"), ("x-envoy-auth-partial-body", "true"),
                ("X-Original-Content-Length", "0"), ("X-Original-Content-Length", "5"),
                ("X-Forwarded-Content-Length", "0"), ("X-Nothing", ""),
            ]
            for claim in claims {
                for isChunked in [false, true] {
                    let count = stand.seen.count
                    let content = Self.bytes(5)
                    let good = try stand.signed("POST", "/pay/1", content, by: Self.wholeSigning).1
                    let fields = good.fields + [claim]
                    let raw = Self.raw("POST", "/pay/1", fields, content, isChunked: isChunked)
                    try expectEqual(stand.client.send(raw: raw).status, 200, "\(claim)")
                    try expectEqual(stand.last(count + 1).count, 5)

                    let none = try stand.signed("POST", "/pay/1", by: Self.wholeSigning).1
                    for fields in [none.fields + [claim], [claim]] {
                        let raw = Self.raw(
                            "POST",
                            "/pay/1",
                            fields,
                            content,
                            isChunked: isChunked
                        )
                        #expect(try stand.client.send(raw: raw).status >= 400, "\(claim)")
                    }
                    expectEqual(stand.seen.count, count + 1)
                }
            }
        }
    }

    /// Where its listener says `content: whole`, as HAProxy's does.
    @Test func `a client can't say for nginx that a request has no content`() throws {
        try play(.nginx, isTried: true) { stand in
            let claim: Fields = [("X-Original-Content-Length", "0")]
            let proof = try stand.signed("POST", "/pay/1", by: Self.wholeSigning).1
            let fields = proof.fields + claim
            let raw = Self.raw("POST", "/pay/1", fields, Self.bytes(5), isChunked: false)
            let answer = try stand.client.send(raw: raw)
            expectEqual(answer.status, 413)
            expectEqual(answer.reason, "content-unseen")
            #expect(stand.seen.isEmpty)
        }
    }

    @Test(arguments: senders)
    func `content that comes late, behind another request or with trailers`(
        proxy: DecidingProxy
    ) throws {
        try play(proxy) { stand in
            let content = Self.bytes(3_000)
            func fields(_ signed: [UInt8]) throws -> Fields {
                try stand.signed("POST", "/pay/1", signed, by: Self.wholeSigning).1.fields
            }
            let late = try Wire(port: stand.port)
            let raw = Self.raw("POST", "/pay/1", try fields(content), content, isChunked: true)
            for place in stride(from: 0, to: raw.count, by: 500) {
                try late.send(Array(raw[place..<min(place + 500, raw.count)]))
                // Answers to another client show that the proxy goes on meanwhile.
                try expectEqual(stand.client.send("GET", "/ready").status, 200)
            }
            try expectEqual(late.readFinalResponse(to: "POST").status, 200)
            try expectEqual(stand.last(1).digest, SHA256.digest(of: content))

            let pipe = try Wire(port: stand.port)
            let good = try fields(content)
            let bad = try fields(content)
            let first = Self.raw("POST", "/pay/1", good, content, isChunked: false)
            let second = Self.raw("POST", "/pay/1", bad, content + [0], isChunked: true)
            try pipe.send(first + second + first)
            try expectEqual(pipe.readFinalResponse(to: "POST").status, 200)
            if let refused = try? pipe.readFinalResponse(to: "POST") {
                #expect(refused.status >= 400)
            }
            if let again = try? pipe.readFinalResponse(to: "POST") {
                #expect(again.status >= 400)
            }
            expectEqual(stand.seen.count, 2)

            let trailers = "App-Attest-Verdict: forged\r\nX-A: forged\r\n"
            let ended = Self.raw(
                "POST",
                "/pay/1",
                try fields(content),
                content,
                isChunked: true,
                trailers: trailers
            )
            try expectEqual(stand.client.send(raw: ended).status, 200)
            let seen = try stand.last(3)
            expectEqual(seen.digest, SHA256.digest(of: content))
            // With a length, nothing can follow the content.
            expectEqual(seen.head.value("Content-Length"), "3000")
            #expect(!seen.head.has("Transfer-Encoding"))
            #expect(!seen.head.fields.contains { $0.value == "forged" })
        }
    }

    @Test(arguments: senders)
    func `over HTTP/2 content has to be what was signed, too`(proxy: DecidingProxy) throws {
        try play(proxy) { stand in
            let client = HTTPClient(port: stand.port, .http2)
            let content = Self.bytes(30_000)
            let good = try stand.signed("POST", "/pay/1", content, by: Self.wholeSigning)
            try expectEqual(client.send(good.0, good.1).status, 200)
            try expectEqual(stand.last(1).digest, SHA256.digest(of: content))
            for other in [Array(content.dropLast()), content + content, [], content + [1]] {
                let proof = try stand.signed("POST", "/pay/1", content, by: Self.wholeSigning).1
                let answer = try client.send("POST", "/pay/1", proof.fields, content: other)
                #expect(answer.status >= 400, "\(other.count)")
            }
            expectEqual(stand.seen.count, 1)
        }
    }

    /// A gateway whose listeners are asked by bytes: Envoy's question with content, without, and
    /// that of HAProxy with content.
    private struct Questions {
        static let partial = "x-envoy-auth-partial-body"
        static let length = "X-Original-Content-Length"
        static let content = bytes(5_000)
        /// What HAProxy says of the request that it asks about.
        static let names: Fields = [
            ("X-Original-Method", "POST"), ("X-Original-URI", "/pay"),
            ("X-Original-Host", "api.example.com"),
        ]

        let gateway: GatewayProcess
        let direct: HTTPClient
        let asked: [HTTPClient]
        var key: SoftwareKey

        init(_ scenario: Scenario) throws {
            let rules = """
                - { id: pay, match: { path: /pay }, mode: enforce }
                - { id: seen, match: { path: /seen }, mode: observe }
                - { id: site, match: { path: /site }, mode: enforce, preflight: forward }
                """
            let listeners = [
                "ext_authz, content: whole", "ext_authz", "auth_request, content: whole",
            ]
            try ClientSide.inTheClear {
                try scenario.configure(
                    origin: "127.0.0.1:9",
                    rules: rules,
                    more: "trusted_proxies: [127.0.0.1/32]",
                    listeners: listeners.map { "  - { address: 127.0.0.1:0, decides: \($0) }" }
                        .joined(separator: "\n")
                )
            }
            key = try scenario.imported()[0]
            let gateway = try ClientSide.inTheClear { try scenario.serve() }
            self.gateway = gateway
            direct = HTTPClient(port: gateway.port)
            asked = try (2...4).map { HTTPClient(port: try gateway.port(ofListener: $0)) }
        }

        mutating func ask(
            _ listener: Int,
            _ path: String,
            _ more: Fields,
            signed: [UInt8],
            _ sent: [UInt8],
            isChunked: Bool = false
        ) throws -> Answer {
            let request = SoftwareKey.Request(
                method: "POST",
                target: path,
                content: signed,
                challenge: try gateway.challenges("assertion", direct)[0]
            )
            let fields = key.proof(of: request, signing: wholeSigning).fields + more
            return try asked[listener].send(
                raw: raw("POST", path, fields, sent, isChunked: isChunked)
            )
        }
    }

    /// What a proxy says of the content that it sends, in questions by their bytes.
    @Test func `a question without all of the content is refused where content is signed`() throws {
        let scenario = try Scenario()
        defer { scenario.end() }
        var questions = try Questions(scenario)
        let (names, content, none) = (Questions.names, Questions.content, [UInt8]())
        let (partial, length) = (Questions.partial, Questions.length)
        let stated = names + [(length, "5000")]
        let overstated = names + [(length, "5001")]
        let empty = names + [(length, "0")]
        let parts: [(listener: Int, more: Fields, sent: [UInt8])] = [
            (0, [(partial, "true")], content), (0, [], content), (0, [(partial, "false")], none),
            (1, [], none), (2, names, none), (2, names, content), (2, stated, none),
            (2, overstated, content), (2, empty, content),
        ]
        for (listener, more, sent) in parts {
            for isChunked in [false, true] {
                // Where no content is taken, chunks are refused before anything else.
                guard listener != 1 || !isChunked else { continue }
                let answer = try questions.ask(
                    listener,
                    "/pay",
                    more,
                    signed: sent,
                    sent,
                    isChunked: isChunked
                )
                let remark: Comment = "\(listener) \(more) \(sent.count) \(isChunked)"
                expectEqual(answer.status, 413, remark)
                expectEqual(answer.reason, "content-unseen", remark)
            }
        }
    }

    /// HAProxy sends no content that its buffer can't hold.
    @Test func `a request whose content did not come is no preflight`() throws {
        let scenario = try Scenario()
        defer { scenario.end() }
        let questions = try Questions(scenario)
        let preflight: Fields = [
            ("X-Original-Method", "OPTIONS"), ("X-Original-URI", "/site"),
            ("X-Original-Host", "api.example.com"), ("Origin", "https://a.example"),
            ("Access-Control-Request-Method", "GET"),
        ]
        let empty: Fields = [(Questions.length, "0")]
        try expectEqual(questions.asked[2].send("GET", "/", preflight + empty).status, 200)
        let cut = try questions.asked[2].send("GET", "/", preflight)
        expectEqual(cut.status, 401)
        expectEqual(cut.reason, "assertion-missing")
    }

    /// Envoy Gateway asks with the fields that its example names, and passes on no others. A field
    /// of the answer that it does not pass on stays as the client has sent it.
    @Test func `Envoy Gateway's example names each field of a proof and of a verdict`() throws {
        let scenario = try Scenario()
        defer { scenario.end() }
        let questions = try Questions(scenario)
        let example = try DecidingProxy.example("envoy-gateway.yaml")
        // Together they name all fields: the second one judges, so its answer has a verdict.
        for path in ["/open", "/seen"] {
            let answer = try questions.asked[0].send("GET", path)
            expectEqual(answer.status, 200)
            let names = try #require(answer.value("X-Envoy-Auth-Headers-To-Remove"))
            for name in names.split(separator: ", ") {
                #expect(example.contains("- \(name.lowercased())\n"), "\(name)")
            }
        }
    }

    @Test func `a question with all of the content is judged by it, and others are read`() throws {
        let scenario = try Scenario()
        defer { scenario.end() }
        var questions = try Questions(scenario)
        let (names, content) = (Questions.names, Questions.content)
        let whole: Fields = [(Questions.partial, "false")]
        try expectEqual(questions.ask(0, "/pay", whole, signed: content, content).status, 200)
        try expectEqual(questions.ask(0, "/pay", [], signed: [], []).status, 200)
        let stated = names + [(Questions.length, "5000")]
        for isChunked in [false, true] {
            let answer = try questions.ask(
                2,
                "/pay",
                stated,
                signed: content,
                content,
                isChunked: isChunked
            )
            expectEqual(answer.status, 200)
        }
        let empty = names + [(Questions.length, "0")]
        try expectEqual(questions.ask(2, "/pay", empty, signed: [], []).status, 200)
        // A rule that observes says so and refuses nothing.
        let part: Fields = [(Questions.partial, "true")]
        let observed = try questions.ask(0, "/seen", part, signed: content, content)
        expectEqual(observed.status, 200)
        expectEqual(observed.value("App-Attest-Verdict"), "refuse")
        expectEqual(observed.value("App-Attest-Reason"), "content-unseen")

        // Content that no rule signs is read, and the connection stays.
        let open = Self.raw("POST", "/open", [], Self.bytes(1 << 20), isChunked: true)
        for _ in 0..<2 { try expectEqual(questions.asked[0].send(raw: open).status, 200) }
        // What is refused by its head alone may be large, and the answer comes all the same.
        let large = Self.raw("POST", "/pay", [], Self.bytes(100_000), isChunked: false)
        try expectEqual(questions.asked[0].send(raw: large).reason, "assertion-missing")
    }
}
