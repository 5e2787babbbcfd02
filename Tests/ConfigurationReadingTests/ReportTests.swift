import ConfigurationReading
import Cryptography
import Expectations
import Foundation
import HTTPWire
import Testing

@Suite struct ReportTests {
    private static let now = UnixTime(seconds: 1_797_292_800)  // 2026-12-15
    private static let keyID = Data(SHA256.digest(of: [1]).array).base64EncodedString()

    private func configuration() throws -> GatewayConfiguration {
        let loaded = load(
            """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { shop: { servers: ["s:80"] }, media: { servers: ["m:80"] } }
            apps: [{ id: TEAM123456.a, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: shop, mode: observe, sign: [method] }
            rules:
              - { id: health, match: { path: /health }, mode: off }
              - { id: get, match: { host: api.example.com, method: GET, path: /v1/** }, \
            mode: observe }
              - id: orders
                match: { host: api.example.com, method: POST, path: /v1/orders }
                mode: enforce
                headers: [idempotency-key]
                rollout: { from: 2026-12-01, to: 2026-12-31, start: 0%, end: 100% }
              - { id: chat, match: { path: /chat }, mode: enforce, accept: [assertion, session], \
            sign: [method, target, body] }
              - { id: photos, match: { path: /photos/* }, mode: enforce, origin: media, \
            allow_encoded: [slash] }
            """
        )
        expectEqual(loaded.errors.map(\.text), [])
        return try #require(loaded.configuration)
    }

    private func explain(_ method: String, _ url: String, _ headers: [String] = []) throws
        -> Explanation
    {
        var sketch = RequestSketch(
            method: method,
            url: url,
            headers: headers.compactMap(RequestSketch.header)
        )
        sketch.client = IPAddress("192.0.2.7")
        return Explanation(sketch, try configuration(), now: Self.now)
    }

    @Test func `explain says why each earlier rule did not match`() throws {
        let text = try explain("POST", "https://api.example.com/v1/orders?dry=1").text
        #expect(text.contains("not health (p.yaml:7): path /v1/orders is not /health"))
        #expect(text.contains("not get (p.yaml:8): method POST is not GET"))
        #expect(
            text.contains(
                """
                rule orders (p.yaml:9): enforce, 0% on 2026-12-01 to 100% on 2026-12-31 by key → \
                shop
                """
            )
        )
    }

    @Test func `explain shows the client data line by line`() throws {
        let text = try explain(
            "POST",
            "https://api.example.com/v1/orders?dry=1",
            ["App-Attest-Challenge: AQEA", "Idempotency-Key: 7", "Idempotency-Key: 8"]
        ).text
        let lines = text.split(separator: "\n").filter { $0.contains("    | ") }.map {
            $0.dropFirst(6)
        }
        expectEqual(
            lines,
            [
                "portcullis-request-v1", "POST", "/v1/orders?dry=1",
                "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:", "AQEA",
                "idempotency-key: 7, 8",
            ]
        )
    }

    @Test func `explain shows what a session signs where the rule takes one`() throws {
        func lines(_ path: String) throws -> [Substring] {
            let text = try explain("GET", path, ["App-Attest-Sequence: 7"]).text
            return text.split(separator: "\n").filter { $0.contains("    | ") }
                .map { $0.dropFirst(6) }
        }
        let digest: Substring = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
        try expectEqual(lines("/chat"), ["portcullis-request-v1", "GET", "/chat", digest, "7"])
        let other = try lines("https://api.example.com/v1/a")
        expectEqual(other.last, "<the value of app-attest-challenge>")
        #expect(try explain("GET", "/chat").text.contains("accepts assertion, session"))
    }

    @Test func `explain leaves open what the sketch does not say`() throws {
        let text = try explain(
            "POST",
            "https://api.example.com/v1/orders",
            ["Content-Length: 5"]
        ).text
        #expect(text.contains("| sha-256=:<base64 of SHA-256 over the content>:"))
        #expect(text.contains("| <the value of app-attest-challenge>"))
        #expect(text.contains("| idempotency-key\n"))
    }

    @Test func `explain shows bucket, threshold and what becomes of the key`() throws {
        let key = try explain(
            "POST",
            "https://api.example.com/v1/orders",
            ["App-Attest-Key-Id: \(Self.keyID)"]
        )
        #expect(key.text.contains("rollout: key is in bucket "))
        #expect(key.text.contains("466666 (46.6666%)"))
        let address = try explain("POST", "https://api.example.com/v1/orders")
        #expect(address.text.contains("rollout: address 192.0.2.7 is in bucket "))
    }

    @Test func `explain writes one JSON object`() throws {
        let json = try explain(
            "POST",
            "https://api.example.com/v1/orders?q=\"",
            ["App-Attest-Key-Id: \(Self.keyID)"]
        ).json
        let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        #expect(object?["request"] as? String == "POST https://api.example.com/v1/orders?q=\"")
        let good = try explain(
            "POST",
            "https://api.example.com/v1/orders",
            ["App-Attest-Key-Id: \(Self.keyID)"]
        ).json
        let parsed = try #require(
            try JSONSerialization.jsonObject(with: Data(good.utf8)) as? [String: Any]
        )
        #expect(parsed["rule"] as? String == "orders")
        expectEqual((parsed["client_data"] as? [String])?.count, 6)
        #expect((parsed["rollout"] as? [String: Any])?["threshold"] as? Int == 466_666)
        expectEqual((parsed["passed"] as? [[String: Any]])?.count, 2)
    }

    @Test(arguments: [
        ("https://a/photos/x%2Fy", "rule photos"),
        ("https://a/chat/", "refused with 400: path-ambiguous"),
        ("https://a/health/", "forwarded unjudged: default (p.yaml:5) does not enforce for it"),
        ("https://a/health/../v1", "refused with 400: path-dot-segment"),
        ("https://a/x%2Fy", "refused with 400: path-encoded-slash"),
        ("https://a/x#y", "refused with 400: target-fragment"),
        ("https://a/.well-known/app-attest/challenges", "refused with 405: method-not-allowed"),
        ("https://a/.well-known/app-attest/challenge", "refused with 404: no-such-endpoint"),
        ("https://a/.well-known/app-attest", "rule default"),
        ("/health", "rule health"),
        ("https://a", "rule default"),
        ("https://u@a/x", "refused with 400: host-invalid"),
    ])
    func `explain says what becomes of a path`(url: String, expected: String) throws {
        let text = try explain("GET", url).text
        #expect(text.contains(expected), "\(text)")
    }

    @Test func `explain names the service that answers a request`() throws {
        let found = try explain("POST", "https://a/.well-known/app-attest/keys")
        #expect(found.text.contains("answered by the gateway itself: keys"), "\(found.text)")
        #expect(found.json.contains(#""endpoint": true, "service": "keys""#), "\(found.json)")
    }

    @Test func `explain refuses a request whose Via names the gateway, as the gateway does`() throws
    {
        let url = "https://api.example.com/v1/orders"
        let text = try explain("POST", url, ["Via: 1.1 a, 1.1 portcullis"]).text
        #expect(text.contains("refused with 508: loop-detected"), "\(text)")
        #expect(!text.contains("rule orders"), "\(text)")
        #expect(try explain("POST", url, ["Via: 1.1 a"]).text.contains("rule orders"))
    }

    @Test func `explain says that OPTIONS without a hop left ends at the gateway`() throws {
        let last = try explain("OPTIONS", "https://a/x", ["Max-Forwards: 0"])
        #expect(last.text.contains("answered by the gateway itself with 200"), "\(last.text)")
        #expect(last.json.contains(#""last_hop": true"#), "\(last.json)")
        #expect(try explain("OPTIONS", "https://a/x", ["Max-Forwards: 1"]).text.contains("default"))
        #expect(try explain("GET", "https://a/x", ["Max-Forwards: 0"]).text.contains("default"))
    }

    @Test func `explain says of a Connection that names what the rule signs whom it refuses`()
        throws
    {
        let headers = ["Idempotency-Key: 7", "Connection: idempotency-key"]
        let sketch = RequestSketch(
            method: "POST",
            url: "https://api.example.com/v1/orders",
            headers: headers.compactMap(RequestSketch.header)
        )
        let configuration = try configuration()
        // The rollout includes 47 % of the addresses.
        let texts = try (1...20).map { number in
            var sketch = sketch
            let client = try #require(IPAddress("192.0.2.\(number)"))
            sketch.client = client
            return Explanation(sketch, configuration, now: Self.now).text
        }
        let refused = texts.count { $0.contains("refused with 400: connection-nomination") }
        let observed = texts.count { $0.contains("counts it as connection-nomination") }
        expectEqual(refused + observed, 20)
        #expect(refused > 0 && observed > 0, "\(texts)")
    }

    @Test func `check sums up the rules in order and what is left to the default`() throws {
        let check = Check(load(Self.small), file: "p.yaml")
        expectEqual(check.exitStatus, 0)
        expectEqual(
            check.text,
            """
            listen   127.0.0.1:0
            admin    none: no command reaches the gateway
            origin   o: o:80
            rules    the first that matches decides
              a: GET,HEAD *.example.com /a/** → o, off  (p.yaml:5)
              default: everything else → o, off  (p.yaml:3)
            coverage requests that meet no rule are forwarded without being verified
            coverage no rule is enforced
            p.yaml: ok, 0 warnings

            """
        )
    }

    /// Eight requests of two seconds took sixteen, and nothing said why.
    @Test func `check says once what strict counters cost, where there are any`() throws {
        let rules = """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            apps: [{ id: ABCDE12345.a, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: o, mode: off }
            rules:
              - { id: a, match: { path: /a }, mode: enforce, counter: strict }
              - { id: b, match: { path: /b }, mode: observe, counter: strict }
              - { id: c, match: { path: /c }, mode: off, counter: strict }
              - { id: d, match: { path: /d }, mode: enforce }
            """
        let text = Check(load(rules), file: "p.yaml").text
        let notes = text.split(separator: "\n").filter { $0.hasPrefix("counter") }
        expectEqual(
            notes,
            [
                """
                counter  2 rules are strict: an app sends its requests one after the other, those \
                to other rules too (eight of 2s take 16s); { window: 64 } admits each counter \
                once, too
                """
            ]
        )
        #expect(text.contains("challenge required, counter strict: one request of a key at a time"))
        #expect(text.contains("challenge required, counter in a window of 64"))
        let windows = Check(load(rules.replacing(", counter: strict", with: "")), file: "p.yaml")
        #expect(!windows.text.contains("strict"), "\(windows.text)")
    }

    private static let small = """
        listen: [{ address: "127.0.0.1:0" }]
        origins: { o: { servers: ["o:80"] } }
        default: { origin: o, mode: off }
        rules:
          - { id: a, match: { host: "*.example.com", method: [GET, HEAD], path: /a/** }, mode: off }
        """

    @Test func `check lists the problems of a refused configuration`() {
        let check = Check(load("listen: 1\n"), file: "p.yaml")
        expectEqual(check.exitStatus, 1)
        #expect(check.text.hasSuffix("p.yaml: refused, 3 errors\n"))
    }

    private func test(_ cases: String) throws -> RouteTest {
        let files = MemoryFiles(files: ["cases.yaml": cases])
        return RouteTest("cases.yaml", try configuration(), now: Self.now, files: files)
    }

    @Test func `cases pass and fail with their places`() throws {
        let result = try test(
            """
            - request: GET https://api.example.com/v1/orders
              expect: { rule: get, mode: observe, origin: shop, enforced: false }
            - request: POST https://api.example.com/v1/orders
              at: 2027-01-01
              client: 192.0.2.7
              expect: { rule: orders, enforced: true }
            - request: GET https://a/photos/1
              expect: { rule: health, origin: media }
            - request: GET https://a/chat/
              expect: { refused: path-ambiguous }
            - request: GET https://a/chat/
              expect: { rule: default }
            """
        )
        expectEqual(result.exitStatus, 1)
        expectEqual(
            result.text,
            """
            ok   cases.yaml:1: GET https://api.example.com/v1/orders
            ok   cases.yaml:3: POST https://api.example.com/v1/orders
            FAIL cases.yaml:7: GET https://a/photos/1: rule is photos, expected health
            ok   cases.yaml:9: GET https://a/chat/
            FAIL cases.yaml:11: GET https://a/chat/: refused is path-ambiguous, expected none
            3 of 5 pass

            """
        )
    }

    @Test func `cases that can't be read are reported like a configuration`() throws {
        let result = try test("- request: GET\n  expects: {}\n")
        expectEqual(result.exitStatus, 2)
        #expect(result.text.contains("cases.yaml:2: [0].expects: found an unknown key"))
        #expect(result.text.contains("(did you mean expect?)"))
    }
}
