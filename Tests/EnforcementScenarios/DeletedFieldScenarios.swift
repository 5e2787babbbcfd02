import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Fields by which a client could make an origin see another request, or another client.
    @Suite struct DeletedFields {
        /// Kept from everybody where an origin asks for them.
        private static let overrides = [
            "X-HTTP-Host-Override", "X-Original-Host", "X-Host", "Disguised-Host", "X-Original-URL",
            "X-Rewrite-URL", "X-Original-URI", "X-Envoy-Original-Path", "X-Envoy-Original-Dst-Host",
            "X-WAWS-Unencoded-URL", "X-Script-Name", "Script-Name", "X-Sendfile-Type",
            "X-Accel-Mapping", "X-Middleware-Subrequest", "X-HTTP-Method-Override",
            "X-Method-Override", "X-HTTP-Method", "X-Original-Method",
        ]

        /// Kept from trusted proxies.
        private static let statements = [
            "X-Real-IP", "X-Client-IP", "Client-IP", "X-Cluster-Client-IP", "True-Client-IP",
            "CF-Connecting-IP", "CF-Connecting-IPv6", "CF-Pseudo-IPv4", "Fastly-Client-IP",
            "Fly-Client-IP", "DO-Connecting-IP", "X-Vercel-Forwarded-For", "Incap-Client-IP",
            "X-Sucuri-ClientIP", "Ali-CDN-Real-IP", "Cdn-Src-Ip", "WL-Proxy-Client-IP",
            "Proxy-Client-IP", "X-Azure-ClientIP", "X-Azure-SocketIP", "X-Appengine-Remote-Addr",
            "X-Appengine-User-IP", "X-ProxyUser-Ip", "X-Envoy-External-Address",
            "X-Original-Forwarded-For", "X-Originating-IP", "X-Remote-IP", "X-Remote-Addr",
            "X-Forwarded", "Forwarded-For", "X-Forwarded-Port", "X-Forwarded-Server",
            "X-Forwarded-Prefix", "X-Forwarded-Scheme", "X-Forwarded-Ssl", "X-Forwarded-Path",
            "X-Forwarded-Client-Cert", "Front-End-Https", "X-ARR-SSL", "WL-Proxy-SSL",
            "X-Appengine-Https", "X-Url-Scheme", "X-Scheme", "CloudFront-Forwarded-Proto",
            "X-ARR-ClientCert", "WL-Proxy-Client-Cert", "X-MS-Client-Principal",
            "X-MS-Client-Principal-Id", "X-Forwarded-Host",
        ]

        private static let always = ["Proxy", "X_Real_IP", "X.Real.IP", "X_HTTP_Host_Override"]

        /// What the origin gets of all of them, `keep` being kept, from a stranger or a proxy.
        private func left(_ keep: [String], isProxy: Bool) throws -> WireHead {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let kept = keep.isEmpty ? "" : ", keep_fields: [\(keep.joined(separator: ", "))]"
            try scenario.configure(
                origin: "127.0.0.1:\(origin.port)",
                rules: """
                    - id: other
                      match: { path: /** }
                      origin: other
                      mode: off
                    """,
                more: isProxy ? "trusted_proxies: [127.0.0.1]" : "",
                origins: "  other: { servers: [\"127.0.0.1:\(origin.port)\"]\(kept) }"
            )
            let gateway = try scenario.serve()
            let fields = Self.overrides + Self.statements + Self.always
            let client = gateway.client()
            _ = try client.send("GET", "/", fields.map { ($0, "forged") } + [("X-Mine", "1")])
            try expectEqual(gateway.stop(), 0)
            return try origin.seen(1)[0].head
        }

        @Test(arguments: [false, true])
        func
            `nothing of what a client says of the host, path, method or address reaches the origin`(
                _ isProxy: Bool
            ) throws
        {
            let head = try left([], isProxy: isProxy)
            for name in Self.overrides + Self.statements + Self.always
            where name != "X-Forwarded-Host" {
                #expect(head.all(name).isEmpty, "\(name) reached the origin")
            }
            expectEqual(head.all("X-Forwarded-Host"), ["api.example.com"])
            expectEqual(head.all("X-Mine"), ["1"])
        }

        @Test func `an origin gets what it keeps, statements of hops from trusted proxies only`()
            throws
        {
            let all = Self.overrides + Self.statements
            let fromStranger = try left(all, isProxy: false)
            for name in Self.overrides {
                expectEqual(fromStranger.all(name), ["forged"], "\(name)")
            }
            for name in Self.statements where name != "X-Forwarded-Host" {
                #expect(fromStranger.all(name).isEmpty, "\(name) reached the origin")
            }
            expectEqual(fromStranger.all("X-Forwarded-Host"), ["api.example.com"])
            let fromProxy = try left(all, isProxy: true)
            for name in all { expectEqual(fromProxy.all(name), ["forged"], "\(name)") }
            for name in Self.always { #expect(fromProxy.all(name).isEmpty, "\(name)") }
        }

        @Test(arguments: [
            "X-Forwarded-For", "Forwarded", "X-Forwarded-Proto", "Proxy", "Connection", "Accept",
            "App-Attest-Verdict", "X_Real_IP", "Host",
        ])
        func `what can't be kept is told by check`(_ name: String) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(
                origin: "127.0.0.1:1",
                rules: "[]",
                origins: "  other: { servers: [\"127.0.0.1:1\"], keep_fields: [\(name)] }"
            )
            let result = try scenario.portcullis("check", scenario.path("portcullis.yaml"))
            #expect(result.status != 0)
            #expect((result.printed + result.complained).contains("origins.other.keep_fields[0]"))
        }

        /// An origin may take what follows on such a connection for the user's (RFC 4559 §6).
        @Test(arguments: [
            ("Authorization", "NTLM TlRMTVNTUAADAAAA", ""), ("Authorization", "Negotiate YIIB", ""),
            ("X-Nothing", "1", "WWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM\r\n"),
        ])
        func `a connection that one client authenticated is never another client's`(
            _ name: String,
            _ value: String,
            _ answer: String
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin(fields: answer)
            try scenario.configure(
                origin: "127.0.0.1:\(origin.port)",
                rules: "[]",
                loops: 1
            )
            let gateway = try scenario.serve()
            try expectEqual(gateway.client().send("GET", "/a", [(name, value)]).status, 200)
            try expectEqual(gateway.client().send("GET", "/b").status, 200)
            try expectEqual(origin.seen(2).map(\.connection), [0, 1])
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `other credentials leave a connection for everybody`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin(fields: "WWW-Authenticate: Basic realm=\"x\"\r\n")
            try scenario.configure(origin: "127.0.0.1:\(origin.port)", rules: "[]", loops: 1)
            let gateway = try scenario.serve()
            for value in ["Basic YTpi", "Bearer negotiate"] {
                let answer = try gateway.client().send("GET", "/a", [("Authorization", value)])
                expectEqual(answer.status, 200)
            }
            try expectEqual(origin.seen(2).map(\.connection), [0, 0])
            try expectEqual(gateway.stop(), 0)
        }
    }
}
