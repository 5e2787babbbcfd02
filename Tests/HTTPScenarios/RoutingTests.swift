import Expectations
import LoopbackKit
import Testing

extension Scenarios {
    /// One rule is enforced, and everything else reaches the same origin unverified. A request that
    /// some servers take for one of the rule's must not.
    struct RoutingTests {
        /// A gateway with these rules before a default that is off; no key is enrolled, so that
        /// what a rule enforces is answered 401.
        private struct Stand {
            let gateway: TestGateway
            let origin: TestOrigin

            init(_ rules: String, paths: String? = nil) throws {
                origin = try TestOrigin()
                gateway = try TestGateway(
                    [("shop", [origin.address])],
                    originOptions: paths.map { ", paths: \($0)" } ?? "",
                    more: """
                        apps: [{ id: ABCDE12345.com.example.shop, environments: [production] }]
                        store: { sqlite: keys.db }
                        rules: [\(rules)]
                        """
                )
            }

            func stop() {
                gateway.stop()
                origin.stop()
            }
        }

        private func request(_ line: String, host: String = "api.example.com") -> String {
            "\(line) HTTP/1.1\r\nHost: \(host)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        }

        private static let orders =
            "{ id: orders, match: { method: [POST], path: /v1/orders }, mode: enforce }"

        @Test(arguments: [
            // Django and Flask turn the method into upper case.
            "post /v1/orders", "Post /v1/orders", "poST /v1/orders",
            // Node's `new URL(req.url, base)`, PHP's `parse_url`.
            "POST //x/v1/orders", "POST ///x/v1/orders",
            // Express.
            "POST /V1/Orders", "POST /v1/orders/", "POST /V1/ORDERS/",
            // nginx, Apache.
            "POST //v1/orders", "POST /v1//orders//",
            // Tomcat, Jetty.
            "POST /v1;a/orders;b=1", "POST /v1/orders%3Bx",
        ])
        func `another spelling of a rule's request does not pass by the rule`(_ line: String) throws
        {
            let stand = try Stand(Self.orders)
            let (gateway, origin) = (stand.gateway, stand.origin)
            defer { stand.stop() }
            try expectEqual(gateway.ask(request("POST /v1/orders")).status, 401)
            #expect(try gateway.ask(request("POST /v1/%6Frders")).status != 200)
            try expectEqual(gateway.ask(request(line)).status, 400)
            #expect(origin.requests.isEmpty)
            try expectEqual(gateway.ask(request("POST /v1/other")).status, 200)
            expectEqual(origin.requests.map(\.target), ["/v1/other"])
        }

        @Test func `a path of a rule does not pass as a wildcard's by its escapes`() throws {
            let users = "{ id: any, match: { path: \"/v1/*\" }, mode: enforce }"
            let open = "{ id: open, match: { path: /v1/orders }, mode: off }"
            let stand = try Stand("\(open), \(users)")
            let (gateway, origin) = (stand.gateway, stand.origin)
            defer { stand.stop() }
            // Express matches undecoded, and runs what it has for `/v1/:id`.
            try expectEqual(gateway.ask(request("POST /v1/%6Frders")).status, 400)
            try expectEqual(gateway.ask(request("POST /v1/Ann%20B")).status, 401)
            #expect(origin.requests.isEmpty)
            try expectEqual(gateway.ask(request("POST /v1/orders")).status, 200)
        }

        @Test func `HEAD does not pass by a rule for GET`() throws {
            let read = "{ id: read, match: { method: GET, path: /v1/orders }, mode: enforce }"
            do {
                let stand = try Stand(read)
                let (gateway, origin) = (stand.gateway, stand.origin)
                defer { stand.stop() }
                let head = try gateway.ask(request("HEAD /v1/orders"), method: "HEAD")
                expectEqual(head.status, 401)
                #expect(origin.requests.isEmpty)
            }
            let open = "{ id: head, match: { method: HEAD, path: /v1/orders }, mode: off }"
            do {
                let stand = try Stand("\(open), \(read)")
                let (gateway, origin) = (stand.gateway, stand.origin)
                defer { stand.stop() }
                let head = try gateway.ask(request("HEAD /v1/orders"), method: "HEAD")
                expectEqual(head.status, 200)
                expectEqual(origin.requests.map(\.head.startLine), ["HEAD /v1/orders HTTP/1.1"])
            }
        }

        @Test(arguments: [
            "/api/pay.php/x", "/api/PAY.php/x/y", "/api/pay.php/", "/api/pay.php;a/b",
        ])
        func `PATH_INFO does not pass by the rule of the script`(_ path: String) throws {
            let pay = "{ id: pay, match: { path: /api/pay.php }, mode: enforce }"
            let stand = try Stand(pay)
            let (gateway, origin) = (stand.gateway, stand.origin)
            defer { stand.stop() }
            try expectEqual(gateway.ask(request("POST \(path)")).status, 400)
            #expect(origin.requests.isEmpty)
            try expectEqual(gateway.ask(request("POST /api/list.php/x")).status, 200)
        }

        @Test func `an encoded slash that a rule allows does not pass by another rule`() throws {
            let rules = """
                { id: private, match: { path: /files/private/** }, mode: enforce },
                { id: files, match: { path: /files/** }, mode: off, allow_encoded: [slash] }
                """
            let stand = try Stand(rules)
            let (gateway, origin) = (stand.gateway, stand.origin)
            defer { stand.stop() }
            try expectEqual(gateway.ask(request("GET /files/private%2Fx")).status, 400)
            #expect(origin.requests.isEmpty)
            try expectEqual(gateway.ask(request("GET /files/a%2Fx")).status, 200)
        }

        @Test func `a case-insensitive origin does not run what a rule spells otherwise`() throws {
            let upper = "{ id: upper, match: { path: /V1/Orders }, mode: enforce }"
            let stand = try Stand(upper)
            let (gateway, origin) = (stand.gateway, stand.origin)
            defer { stand.stop() }
            try expectEqual(gateway.ask(request("POST /v1/orders")).status, 400)
            try expectEqual(gateway.ask(request("POST /V1/Orders")).status, 401)
            #expect(origin.requests.isEmpty)
        }

        @Test func `an origin that reads paths as written gets them so`() throws {
            let paths = "{ case: sensitive, slashes: exact, network_path: kept }"
            let stand = try Stand(Self.orders, paths: paths)
            let (gateway, origin) = (stand.gateway, stand.origin)
            defer { stand.stop() }
            for path in ["/V1/Orders", "/v1/orders/", "//x/v1/orders"] {
                try expectEqual(gateway.ask(request("POST \(path)")).status, 200)
            }
            try expectEqual(gateway.ask(request("POST /v1/orders;x")).status, 400)
            expectEqual(origin.requests.count, 3)
        }

        @Test(arguments: [
            "/v1/users/AbC-123", "/v1/users/a%20b", "/v1/users/joe@example.pl", "/Static/Logo.PNG",
            "/v1/users/x/", "/img//a.png",
        ])
        func `what no rule tells apart goes on as it came`(_ path: String) throws {
            let users = "{ id: users, match: { path: /v1/users/** }, mode: off }"
            let stand = try Stand("\(users), \(Self.orders)")
            let (gateway, origin) = (stand.gateway, stand.origin)
            defer { stand.stop() }
            try expectEqual(gateway.ask(request("POST \(path)")).status, 200)
            expectEqual(origin.requests.map(\.target), [path])
        }

        @Test(arguments: [
            ("api.example.com", "api.example.com..", 400), ("api.example.com", ".", 400),
            ("api.example.com", "api..example.com", 400),
            ("api.example.com", ".api.example.com", 400),
            ("api.example.com", "API.example.com.", 401),
            ("api.example.com", "api.example.com:443", 401),
            ("\"[2001:db8::1]\"", "[2001:0DB8:0:0::1]:8443", 401),
            ("\"[2001:db8::1]\"", "[2001:db8::0:1]", 401),
            ("\"[::ffff:192.0.2.1]\"", "[::ffff:c000:201]", 401),
            ("192.0.2.1", "[::ffff:192.0.2.1]", 401), ("192.0.2.1", "192.0.2.1.", 401),
            ("\"[2001:db8::1]\"", "[2001:db8::2]", 200),
        ])
        func `another spelling of a host does not pass by its rule`(
            pattern: String,
            host: String,
            status: Int
        ) throws {
            let rule = "{ id: host, match: { host: \(pattern) }, mode: enforce }"
            let stand = try Stand(rule)
            let (gateway, origin) = (stand.gateway, stand.origin)
            defer { stand.stop() }
            try expectEqual(gateway.ask(request("GET /", host: host)).status, status)
            expectEqual(origin.requests.isEmpty, status != 200)
        }

        @Test func `HTTP 1.0 without Host meets rules without host, and the default`() throws {
            let rules = """
                { id: host, match: { host: api.example.com, path: /a }, mode: off },
                { id: any, match: { path: /a }, mode: enforce }
                """
            let stand = try Stand(rules)
            let (gateway, origin) = (stand.gateway, stand.origin)
            defer { stand.stop() }
            try expectEqual(gateway.ask("GET /a HTTP/1.0\r\n\r\n").status, 401)
            #expect(origin.requests.isEmpty)
            try expectEqual(gateway.ask("GET /b HTTP/1.0\r\n\r\n").status, 200)
            try expectEqual(gateway.ask(request("GET /a")).status, 200)
        }
    }
}
