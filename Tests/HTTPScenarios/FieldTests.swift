import Expectations
import LoopbackKit
import Testing

extension Scenarios {
    struct FieldTests {
        /// What the origin got of a request.
        private func forwarded(_ request: String, more: String = "") throws -> WireHead {
            let bench = try Bench(more: more)
            defer { bench.stop() }
            try expectEqual(bench.gateway.ask(request).status, 200)
            return try #require(bench.origin.requests.first).head
        }

        @Test func `OPTIONS of the server goes out as a star`() throws {
            let star = "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"
            try expectEqual(forwarded(star).startLine, "OPTIONS * HTTP/1.1")
            let absolute = "OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n"
            try expectEqual(forwarded(absolute).startLine, "OPTIONS * HTTP/1.1")
        }

        @Test func `an absolute target goes out in origin-form with its own Host`() throws {
            let head = try forwarded("GET http://a:80/x?y=1 HTTP/1.1\r\nHost: a:80\r\n\r\n")
            expectEqual(head.startLine, "GET /x?y=1 HTTP/1.1")
            expectEqual(head.all("host"), ["a:80"])
        }

        @Test func `path and query go out as they came`() throws {
            let target = "/a%20b/~c/%7Ed;p=1/%C3%BC?q=%2F..%2F&r=[1]&&"
            let head = try forwarded("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
            expectEqual(head.startLine, "GET \(target) HTTP/1.1")
        }

        @Test func `fields of the hop stay here, unknown ones pass in their order`() throws {
            let head = try forwarded(
                """
                GET / HTTP/1.1\r
                Host: a\r
                X-One: 1\r
                Connection: keep-alive, X-Hop\r
                X-Hop: 1\r
                Keep-Alive: timeout=5\r
                Proxy-Connection: keep-alive\r
                TE: gzip\r
                Upgrade: h2c\r
                X-One: 2\r
                Authorization: Basic abc\r
                Cookie: a=b\r
                \r

                """
            )
            for name in ["connection", "x-hop", "keep-alive", "proxy-connection", "te", "upgrade"] {
                #expect(!head.has(name), "\(name) reached the origin")
            }
            expectEqual(head.all("x-one"), ["1", "2"])
            expectEqual(head.all("authorization"), ["Basic abc"])
            expectEqual(head.all("cookie"), ["a=b"])
        }

        @Test func `fields of the origin's hop stay here too`() throws {
            let bench = try Bench { connection in
                while let request = try connection.nextRequest() {
                    try connection.answer(
                        200,
                        fields: """
                            Connection: X-Hop\r
                            X-Hop: 1\r
                            Keep-Alive: timeout=5\r
                            App-Attest-Verdict: pass\r
                            Set-Cookie: a=1\r
                            Set-Cookie: b=2\r
                            Date: Thu, 01 Jan 2026 00:00:00 GMT\r

                            """,
                        to: request
                    )
                }
            }
            defer { bench.stop() }
            let head = try bench.gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").head
            for name in ["connection", "x-hop", "keep-alive", "app-attest-verdict"] {
                #expect(!head.has(name), "\(name) reached the client")
            }
            expectEqual(head.all("set-cookie"), ["a=1", "b=2"])
            expectEqual(head.all("date"), ["Thu, 01 Jan 2026 00:00:00 GMT"])
        }

        private static let spoofed = """
            GET / HTTP/1.1\r
            Host: shop.test\r
            Via: 1.1 edge\r
            X-Forwarded-For: 203.0.113.9\r
            X-Forwarded-Proto: https\r
            X-Forwarded-Host: front.test\r
            X-Real-IP: 203.0.113.9\r
            Forwarded: for=203.0.113.9;proto=https\r
            App-Attest-Verdict: pass\r
            App_Attest_Verdict: pass\r
            \r

            """

        @Test func `what a stranger says of the client is replaced`() throws {
            let head = try forwarded(Self.spoofed)
            expectEqual(head.all("x-forwarded-for"), ["127.0.0.1"])
            expectEqual(head.all("x-forwarded-proto"), ["http"])
            expectEqual(head.all("x-forwarded-host"), ["shop.test"])
            for name in ["x-real-ip", "forwarded", "app-attest-verdict", "app_attest_verdict"] {
                #expect(!head.has(name), "\(name) reached the origin")
            }
            let via = head.all("via")
            expectEqual(via.first, "1.1 edge")
            #expect(via.count == 2 && via[1].hasPrefix("1.1 "))
        }

        @Test func `a field that CGI can't tell from a trusted one stays here`() throws {
            let names = ["App.Attest.Verdict", "App~Attest-Key-Id", "X.Forwarded.For", "X!Real!IP"]
            let lines = names.map { $0 + ": 203.0.113.9\r\n" }.joined()
            let head = try forwarded("GET / HTTP/1.1\r\nHost: a\r\nX.Y: 1\r\n\(lines)\r\n")
            for name in names { #expect(!head.has(name), "\(name) reached the origin") }
            expectEqual(head.all("x.y"), ["1"])
        }

        @Test func `what a trusted proxy says of the client is continued`() throws {
            let head = try forwarded(Self.spoofed, more: "trusted_proxies: [127.0.0.0/8]")
            expectEqual(head.all("x-forwarded-for"), ["203.0.113.9, 127.0.0.1"])
            expectEqual(head.all("x-forwarded-proto"), ["https"])
            // Of what a client may have written, nothing is passed on for the proxy's word.
            expectEqual(head.all("x-forwarded-host"), ["shop.test"])
            for name in ["x-real-ip", "forwarded", "app-attest-verdict"] {
                #expect(!head.has(name), "\(name) reached the origin")
            }
        }

        @Test func `Forwarded is continued where it is the source`() throws {
            let more = "trusted_proxies: [127.0.0.0/8]\nclient_address: forwarded"
            let head = try forwarded(Self.spoofed, more: more)
            let forwarded = try #require(head.value("forwarded"))
            #expect(forwarded.hasPrefix("for=203.0.113.9;proto=https, for=127.0.0.1;proto=http"))
        }

        @Test func `a request that has passed here before is a loop`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            _ = try bench.gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            let via = try #require(bench.origin.requests.first?.head.value("via"))
            let again = "GET / HTTP/1.1\r\nHost: a\r\nVia: \(via)\r\n\r\n"
            try expectEqual(bench.gateway.ask(again).status, 508)
        }

        @Test func `trailers of a request are not for the origin`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(
                """
                POST / HTTP/1.1\r
                Host: a\r
                Transfer-Encoding: chunked\r
                Trailer: X-Sum\r
                \r
                5;ext=1\r
                hello\r
                0\r
                X-Sum: 1\r
                Content-Length: 9\r
                Host: evil\r
                App-Attest-Verdict: pass\r
                \r

                """
            )
            try expectEqual(client.readResponse().status, 200)
            let request = try #require(bench.origin.requests.first)
            expectEqual(request.body, Array("hello".utf8))
            #expect(request.trailers.isEmpty && !request.head.has("trailer"))
        }

        @Test func `trailers of a response reach a client that takes them, and no other`() throws {
            let bench = try Bench { connection in
                while try connection.nextRequest() != nil {
                    try connection.wire.send(
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                            + "2\r\nok\r\n0\r\nX-Sum: 1\r\nSet-Cookie: a=b\r\n\r\n"
                    )
                }
            }
            defer { bench.stop() }
            let takes = "TE: trailers\r\nConnection: TE\r\n"
            let with = try bench.gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\(takes)\r\n")
            expectEqual(with.trailers.map(\.name), ["X-Sum"])
            let without = try bench.gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            expectEqual(without.text, "ok")
            #expect(without.trailers.isEmpty)
            expectEqual(bench.origin.requests.first?.head.all("te"), ["trailers"])
        }

        /// RFC 9110 §7.6.1: the option names a field of the trailers as it names one of the head.
        @Test(arguments: ["X-Sum", "x-sum", "keep-alive, X-Sum"])
        func `trailers of a response that Connection names end here`(_ options: String) throws {
            let bench = try Bench { connection in
                while let request = try connection.nextRequest() {
                    let field = request.target == "/named" ? "Connection: \(options)\r\n" : ""
                    try connection.wire.send(
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\(field)\r\n"
                            + "2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n"
                    )
                }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            for (target, trailers) in [("/", ["X-Sum"]), ("/named", []), ("/", ["X-Sum"])] {
                let takes = "TE: trailers\r\nConnection: TE\r\n"
                try client.send("GET \(target) HTTP/1.1\r\nHost: a\r\n\(takes)\r\n")
                let answer = try client.readResponse()
                expectEqual(answer.text, "ok")
                expectEqual(answer.trailers.map(\.name), trailers)
            }
        }
    }
}
