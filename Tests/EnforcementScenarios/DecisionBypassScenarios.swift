import Expectations
import LoopbackKit
import SoftwareAuthenticator
import Testing

// What the other proxy forwards beside the request that was asked about.
extension Scenarios.Decisions {
    private static let marks = "_.!#$%&'*+^`|~"
    private static let letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    private static let clean = Set(letters + "0123456789-")

    @Test(arguments: DecidingProxy.allCases)
    func `an admitted request opens no tunnel to the application`(proxy: DecidingProxy) throws {
        try play(proxy) { stand in
            let options = ("Connection", "Upgrade, HTTP2-Settings")
            let settings = ("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA")
            for value in ["h2c", "H2C", "h2c, websocket", "websocket, h2c", "TLS/1.2", "x"] {
                for more in [[options, settings], [options], [("Connection", "Upgrade")], []] {
                    _ = try stand.client.send("GET", "/open", [("Upgrade", value)] + more)
                }
            }
            let lines = [("Upgrade", "websocket"), ("Upgrade", "h2c"), options]
            _ = try stand.client.send("GET", "/open", lines)
            _ = try stand.client.send("GET", "/open", lines.reversed())
            _ = try stand.client.send(
                "OPTIONS",
                "/site/1",
                [
                    ("Origin", "https://a.example"), ("Access-Control-Request-Method", "GET"),
                    ("Upgrade", "h2c"), options,
                ]
            )
            for seen in stand.seen {
                #expect(!seen.head.has("HTTP2-Settings"))
                let upgrade = seen.head.all("Upgrade").map { $0.lowercased() }
                #expect([[], ["websocket"]].contains(upgrade))
            }
        }
    }

    @Test(arguments: DecidingProxy.allCases)
    func `no name reaches the application that it takes for another`(
        proxy: DecidingProxy
    ) throws {
        try play(proxy) { stand in
            let names = [
                "App-Attest-Verdict", "App-Attest-Key-Id", "X-HTTP-Method-Override",
                "X-Original-URL", "Idempotency-Key",
            ]
            for mark in Self.marks {
                let twins = names.map { ($0.replacing("-", with: String(mark)), "forged") }
                for twin in twins { _ = try stand.client.send("GET", "/open", [twin]) }
                let asked = [
                    ("Origin", "https://a.example"), ("Access-Control-Request-Method", "GET"),
                ]
                _ = try stand.client.send("OPTIONS", "/site/1", asked + twins)
                // A signed request does what was signed, whatever else it says.
                let (request, proof) = try stand.signed("POST", "/orders/1", [1])
                _ = try stand.client.send(request, proof, more: twins)
            }
            for seen in stand.seen {
                for (name, value) in seen.head.fields {
                    #expect(Set(name).isSubset(of: Self.clean), "\(name)")
                    #expect(value != "forged", "\(name)")
                }
            }
        }
    }

    /// Envoy Gateway's question has the fields alone that its example names. So the gateway sees no
    /// other name, and can't refuse one.
    @Test func `Envoy Gateway's example deletes the names that Envoy's examples delete`() throws {
        let pattern = "\"[^:a-zA-Z0-9-].*|[^:].*[^a-zA-Z0-9-].*\""
        for file in ["envoy.yaml", "envoy-grpc.yaml", "envoy-gateway.yaml"] {
            #expect(try DecidingProxy.example(file).contains(pattern), "\(file)")
        }
    }

    @Test(arguments: DecidingProxy.allCases)
    func `the verdict arrives though the client's Connection names it`(
        proxy: DecidingProxy
    ) throws {
        try play(proxy) { stand in
            for (count, options) in [
                "App-Attest-Verdict", "close, app-attest-verdict", "App-Attest-Verdict, x-a",
            ].enumerated() {
                let (request, proof) = try stand.signed("GET", "/orders/1")
                let more = [("Connection", options)]
                let answer = try stand.client.send(request, proof, more: more)
                expectEqual(answer.status, 200, "\(options): \(answer.text)")
                let seen = try stand.last(count + 1)
                expectEqual(seen.head.all("App-Attest-Verdict"), ["pass"], "\(options)")
                expectEqual(seen.head.value("App-Attest-Key-Id"), proof.keyID, "\(options)")
                let said = seen.head.all("Connection").joined().lowercased()
                #expect(!said.contains("app-attest"), "\(options)")
            }
        }
    }

    /// Portcullis, and Envoy, write in this field which certificate the client has shown.
    @Test(arguments: DecidingProxy.allCases)
    func `no client names a certificate to the application`(proxy: DecidingProxy) throws {
        try play(proxy) { stand in
            let forged = [("X-Forwarded-Client-Cert", "Hash=00;Subject=\"CN=root\"")]
            try expectEqual(stand.client.send("GET", "/open", forged).status, 200)
            #expect(try !stand.last(1).head.has("X-Forwarded-Client-Cert"))
            let (request, proof) = try stand.signed("GET", "/orders/1")
            let answer = try stand.client.send(request, proof, more: forged)
            expectEqual(answer.status, 200, "\(answer.text)")
            #expect(try !stand.last(2).head.has("X-Forwarded-Client-Cert"))
        }
    }

    /// HAProxy leaves out a field that its buffer has no room for. A signed verdict has the target,
    /// so a client chooses its length.
    @Test(arguments: DecidingProxy.allCases)
    func `a request that fills a buffer is forwarded with its whole verdict, or not at all`(
        proxy: DecidingProxy
    ) throws {
        try play(proxy) { stand in
            let content = [UInt8](repeating: 1, count: 100_000)
            for length in [10, 1_000, 3_500] {
                let count = stand.seen.count
                let target = "/watched/1?a=" + String(repeating: "b", count: length)
                // A proxy may answer, and close, before it has read all of it.
                let status = (try? stand.client.send("POST", target, content: content))?.status
                guard status == 200 else {
                    stand.client.close()
                    #expect(status ?? 503 >= 500 && length > 1_000, "\(length)")
                    expectEqual(proxy, .haproxy, "\(length)")
                    expectEqual(stand.seen.count, count, "\(length)")
                    continue
                }
                let head = try stand.last(count + 1).head
                expectEqual(head.all("App-Attest-Verdict"), ["refuse"], "\(length)")
                expectEqual(head.all("App-Attest-Reason"), ["assertion-missing"], "\(length)")
                expectEqual(head.all("App-Attest-Verdict-Token").count, 1, "\(length)")
            }
        }
    }

    /// HAProxy's own client has no room for more lines than HAProxy takes; the script adds some.
    @Test func `HAProxy asks with all fields of a request, or does not ask`() throws {
        try play(.haproxy) { stand in
            for (count, status) in [(60, 200), (85, 200), (98, 431)] {
                let fields = (0..<count).map { (name: "X-Field-\($0)", value: "a") }
                let before = stand.seen.count
                let answer = try stand.client.send("GET", "/open", fields)
                expectEqual(answer.status, status, "\(count): \(answer.text)")
                expectEqual(stand.seen.count, before + (status == 200 ? 1 : 0), "\(count)")
            }
            try expectEqual(stand.client.send("GET", "/open").status, 200)
        }
    }

    /// gRPC's own form of a refusal has the status 200, which admits a request.
    @Test(arguments: DecidingProxy.allCases)
    func `a request that calls itself a gRPC call is refused, too`(proxy: DecidingProxy) throws {
        try play(proxy) { stand in
            for type in ["application/grpc", "application/grpc+proto", "application/grpc-web"] {
                for content in [[], Array("content".utf8)] {
                    let fields = [("Content-Type", type), ("TE", "trailers")]
                    for path in ["/orders/1", "/closed/x"] {
                        _ = try stand.client.send("POST", path, fields, content: content)
                    }
                }
            }
            #expect(stand.seen.isEmpty)
        }
    }

    /// Envoy writes `!` for bytes that are no UTF-8, but not in raw headers over gRPC.
    @Test(arguments: DecidingProxy.allCases)
    func `what may have been another byte is not taken for what was signed`(
        proxy: DecidingProxy
    ) throws {
        try play(proxy) { stand in
            let (request, proof) = try stand.signed("GET", "/orders/1?x=a!b")
            let answer = try stand.client.send(request, proof)
            guard proxy == .envoy || proxy == .mesh else {
                return expectEqual(answer.status, 200, "\(answer.text)")
            }
            expectEqual(answer.reason, "client-data-ambiguous")
            #expect(stand.seen.isEmpty)
        }
    }

    /// Caddy's and nginx's examples speak HTTP/2 with TLS only, which they leave to the reader.
    @Test(arguments: [DecidingProxy.haproxy, .traefik, .envoy, .envoyGRPC, .mesh])
    func `an HTTP/2 client is served, and asked for its proof`(proxy: DecidingProxy) throws {
        try play(proxy) { stand in
            let client = HTTPClient(port: stand.port, .http2)
            try expectEqual(client.send("GET", "/open?a=b").status, 200)
            try expectEqual(stand.last(1).target, "/open?a=b")
            try expectEqual(client.send("GET", "/orders/1").status, 401)
            let forged = [("App-Attest-Verdict", "pass"), ("X-Original-URI", "/open")]
            try expectEqual(client.send("GET", "/orders/1", forged).status, 401)
            let (request, proof) = try stand.signed("GET", "/orders/2?x=%20a")
            let answer = try client.send(request, proof)
            expectEqual(answer.status, 200, "\(answer.text)")
            let seen = try stand.last(2)
            expectEqual(seen.target, "/orders/2?x=%20a")
            expectEqual(seen.head.value("App-Attest-Verdict"), "pass")
            expectEqual(seen.head.value("App-Attest-Key-Id"), proof.keyID)
        }
    }
}
