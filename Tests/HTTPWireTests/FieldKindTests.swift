import Expectations
import HTTPWire
import Testing

struct FieldKindTests {
    /// The kind of a name in a line that ends as given.
    private static func kind(_ name: String, _ rest: String) throws -> FieldKind {
        let head = try ResponseHead.reading("HTTP/1.1 200 OK\r\n\(name)\(rest)\r\n\r\n")
        return head.fields.fields[0].kind
    }

    @Test(
        arguments: [
            ("Date", .date), ("dATE", .date), ("Dat", .other), ("Dates", .other),
            ("X-Forwarded-For", .xForwardedFor), ("X-Forwarded-", .hopStatement),
            ("X-Forwarded-Something-Very-Long-Indeed", .hopStatement),
            ("X-Forwarded", .hopStatement), ("X-Forwarde", .other),
            ("App.Attest.Verdict", .disguised), ("X~Forwarded-For", .disguised),
            ("X.Forwarded.Something-Very-Long-Indeed", .disguised), ("X.Y", .other),
            ("App-Attest-Key-ID", .appAttestKeyID), ("App-Attest-Anything", .appAttestOther),
            ("x-app-ATTEST-verified", .appAttestOther), ("App-Attes", .other),
            ("App-Attest-Device-Token", .appAttestDeviceToken),
            ("app-attest-device-BITS", .appAttestDeviceBits),
            ("App-Attest-Device", .appAttestOther), ("App.Attest.Device.Bits", .disguised),
            ("X-App-Attest", .other), ("X_Forwarded_For", .underscored), ("_", .underscored),
            ("X-A-Name-Of-More-Than-24-Bytes_", .underscored),
            ("X-HTTP-Method-Override", .methodOverride),
            ("Proxy-Authorization", .proxyAuthorization), ("Server", .server), ("Servers", .other),
            ("Host~", .other), ("Proxy", .proxy), ("C^te", .other),
            ("X-HTTP-Host-Override", .targetOverride), ("X-Envoy-Original-Path", .targetOverride),
            ("x-envoy-original-dst-host", .targetOverride), ("X-Envoy", .other),
            ("X-Envoy-External-Address", .clientAddress), ("Fastly-Client-IP", .clientAddress),
            ("WL-Proxy-Client-IP", .clientAddress), ("X-Azure-ClientIP", .clientAddress),
            ("X.Azure.ClientIP", .disguised), ("X_Azure_ClientIP", .underscored),
            ("X-MS-Client-Principal", .hopStatement), ("x-ms-CLIENT-principal-id", .hopStatement),
            ("X-MS-Client-Princip", .other), ("X-MS-Client-Request-Id", .other),
            ("Client-Cert", .hopStatement), ("Client-Cert-Chain", .hopStatement),
            ("Client-Ce", .other), ("X-Client-Cert", .hopStatement), ("X-Client-Version", .other),
            ("X-Client-Cert-Subject-DN", .hopStatement), ("SSL-Client-Verify", .hopStatement),
            ("X-SSL-Client-S-DN", .hopStatement), ("X-SSL-Clients", .other),
            ("ssl-client-subject-dn", .hopStatement), ("X-Amzn-Mtls-Clientcert", .hopStatement),
            ("X-Amzn-Mtls-Clientcert-Subject", .hopStatement), ("X-Amzn-Mtl", .other),
            ("X-Amzn-Trace-Id", .other), ("CloudFront-Forwarded-Proto", .hopStatement),
            ("CloudFront-Viewer", .other),
            ("Cache-Control", .cacheControl), ("CACHE-CONTROL", .cacheControl),
            ("Cloudflare-CDN-Cache-Control", .targetedCacheControl),
            ("Cloudflare-CDN-Cache-Tag", .other), ("Cloudflare-CDN", .other),
            ("Netlify-CDN-Cache-Control", .targetedCacheControl),
            ("Vercel-CDN-Cache-Control", .targetedCacheControl), ("Netlify-CDN", .other),
        ] as [(String, FieldKind)]
    )
    func `a name is known in any case and only as a whole`(_ name: String, _ kind: FieldKind) throws
    {
        // A name is read in words of eight bytes, as far as the head has them.
        let rests =
            [":", ": 1", ": \(String(repeating: "a", count: 8))", ":\r\nX: 1"]
            + [": 1\r\nY: \(String(repeating: "b", count: 32))"]
        for rest in rests { try expectEqual(Self.kind(name, rest), kind) }
    }

    @Test func `the kinds fit one word`() {
        #expect(FieldKind.allCases.count < 64)
        expectEqual(
            FieldKindSet(FieldKind.allCases).rawValue.nonzeroBitCount,
            FieldKind.allCases.count
        )
    }

    @Test func `a set of names is asked without case`() {
        let set = FieldNameSet(["X-One", "A"])
        let bytes = Array("x-oneX-Ones".utf8)
        let answers = [0..<5, 5..<11, 0..<1].map { set.contains(bytes.span, $0) }
        expectEqual(answers, [true, false, false])
        #expect(FieldNameSet().isEmpty && !set.isEmpty)
    }

    @Test func `a name is the twin of one in the set only if CGI makes one variable of both`() {
        let set = FieldNameSet(["X-One", "x.two"])
        func isTwin(_ name: String) -> Bool {
            let bytes = Array(name.utf8)
            return set.containsTwin(bytes.span, of: 0..<bytes.count)
        }
        for name in ["X.One", "x_one", "X^ONE", "x-two", "X|Two"] {
            #expect(isTwin(name), "\(name)")
        }
        for name in ["x-one", "X.TWO", "X1One", "XXOne", "X-Ones", ""] {
            #expect(!isTwin(name), "\(name)")
        }
    }

    @Test func `what is written by the gateway can't be kept, nor what is forwarded anyway`() {
        for name in [
            "x-real-ip", "X-Forwarded-Host", "X-Forwarded-Prefix", "X-Host", "X-HTTP-Method",
            "traceparent", "tracestate",
        ] {
            #expect(KeptFields.isKeepable(name), "\(name)")
        }
        let others = [
            "X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "Proxy", "Connection", "Accept",
            "Host", "App-Attest-Verdict", "App-Attest-Assertion", "X_Real_IP", "X.Real.IP",
            "Content-Length", "Expect", "X-Request-Id",
        ]
        for name in others { #expect(!KeptFields.isKeepable(name), "\(name)") }
        let kept = KeptFields(["x-real-ip", "x-host"])
        let bytes = Array("X-HostX-Real-IP".utf8)
        let answers = [0..<6, 6..<15].map {
            [kept.fromAll.contains(bytes.span, $0), kept.fromProxies.contains(bytes.span, $0)]
        }
        expectEqual(answers, [[true, true], [false, true]])
        #expect(!kept.keepsHost && KeptFields(["x-forwarded-host"]).keepsHost)
    }

    @Test(arguments: [
        ("Authorization: NTLM TlRM", true), ("Authorization: negotiate YII=", true),
        ("Authorization: Negotiate", true), ("Authorization: Basic bmVnb3RpYXRl", false),
        ("Authorization: Bearer ntlm", false), ("Authorization:", false), ("X: NTLM", false),
    ])
    func `authentication of a connection is known by its scheme`(_ line: String, _ is: Bool) throws
    {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n\(line)\r\n\r\n"
        let bytes = Array(text.utf8)
        let head = try RequestHead.reading(text)
        expectEqual(head.fields.authenticatesConnection(bytes.span), `is`)
    }

    @Test(arguments: [
        ("WWW-Authenticate: NTLM", true),
        ("WWW-Authenticate: Basic realm=\"a, b\", Negotiate", true),
        ("WWW-Authenticate: Basic realm=x\r\nWWW-Authenticate: negotiate oYG2MIGz", true),
        ("WWW-Authenticate: Basic realm=\"NTLMv2\"", false), ("WWW-Authenticate: AppAttest", false),
    ])
    func `an answer that authenticates a connection is known too`(
        _ lines: String,
        _ is: Bool
    ) throws {
        let text = "HTTP/1.1 401 x\r\n\(lines)\r\n\r\n"
        let bytes = Array(text.utf8)
        let head = try ResponseHead.reading(text)
        expectEqual(head.fields.authenticatesConnection(bytes.span), `is`)
    }

    @Test func `kinds are found, first and only`() throws {
        let head = try RequestHead.reading(
            "GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 b\r\nVia: 1.1 c\r\n\r\n"
        )
        #expect(head.fields.contains(.via) && !head.fields.contains(.date))
        #expect(head.fields.first(.via) != nil && head.fields.only(.via) == nil)
        #expect(head.fields.only(.host)?.kind == .host && head.fields.first(.cookie) == nil)
    }
}
