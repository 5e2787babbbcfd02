import Expectations
import HTTPWire
import Testing

/// The head that a proxy's question is about.
@Suite struct DecisionFormTests {
    private static let original = [
        "X-Original-Method: POST", "X-Original-URI: /orders/1?x=%20",
        "X-Original-Host: api.example",
    ]
    private static let forwarded = [
        "X-Forwarded-Method: POST", "X-Forwarded-Uri: /orders/1?x=%20",
        "X-Forwarded-Host: api.example",
    ]

    /// What is written; `nil` where the question names no request.
    private func asked(_ form: DecisionForm, _ lines: [String]) throws -> String? {
        let text = (["GET /question HTTP/1.1", "Host: gateway"] + lines).map { $0 + "\r\n" }
            .joined()
        let bytes = Array((text + "\r\n").utf8)
        let head = try RequestHead.reading(text + "\r\n")
        var out: [UInt8] = []
        guard form.write(head, bytes.span, into: &out) else { return nil }
        return String(decoding: out, as: UTF8.self)
    }

    @Test func `each form has names of its own`() throws {
        let expected = "POST /orders/1?x=%20 HTTP/1.1\r\nHost: api.example\r\n"
        let other = "X-Original-Method: POST\r\n"
        try expectEqual(asked(.authRequest, Self.original), expected + "\r\n")
        try expectEqual(asked(.forwardAuth, Self.forwarded), expected + "\r\n")
        try expectEqual(
            asked(.forwardAuth, Self.forwarded + ["X-Original-Method: POST"]),
            expected + other + "\r\n"
        )
        try expectEqual(asked(.authRequest, Self.forwarded), nil)
        try expectEqual(asked(.forwardAuth, Self.original), nil)
        try expectEqual(asked(.extAuthz, Self.original), nil)
    }

    @Test func `a name that is absent, empty or repeated names no request`() throws {
        for (form, lines) in [
            (DecisionForm.authRequest, Self.original), (.forwardAuth, Self.forwarded),
        ] {
            for index in lines.indices {
                let line = lines[index]
                var without = lines
                without.remove(at: index)
                try expectEqual(asked(form, without), nil, "without \(line)")
                let name = line.prefix { $0 != ":" }
                try expectEqual(asked(form, without + ["\(name):"]), nil, "\(name) empty")
                try expectEqual(asked(form, lines + [line]), nil, "\(name) twice")
                try expectEqual(
                    asked(form, lines + [line.lowercased()]),
                    nil,
                    "\(name) in two cases"
                )
                let twin = name.replacing("-", with: "_")
                try expectEqual(asked(form, without + ["\(twin): /x"]), nil, "\(twin)")
            }
        }
    }

    @Test(arguments: [
        "http://evil.example/orders", "orders", "**", "?x", "//", "/a b", "/a\tb",
    ])
    func `a target in another form is no head, or names no request`(target: String) throws {
        let lines = [Self.original[0], "X-Original-URI: \(target)", Self.original[2]]
        guard let text = try asked(.authRequest, lines) else { return }
        // What begins with a slash is for the parser, which is that of all heads.
        #expect(target.hasPrefix("/"))
        if target.dropFirst().contains(where: \.isWhitespace) {
            #expect(throws: Malformed.self) { _ = try RequestHead.reading(text) }
        }
    }

    @Test(arguments: ["POST /admin", "POST\t", "GET /x HTTP/1.1 GET", "(", "CONNECT"])
    func `a method that is more than a method is no head`(method: String) throws {
        let lines = ["X-Original-Method: \(method)"] + Self.original.dropFirst()
        let text = try #require(try asked(.authRequest, Array(lines)))
        guard method != "POST\t" else { return }  // White space around a value is none of it.
        #expect(throws: Malformed.self) { _ = try RequestHead.reading(text) }
    }

    @Test func `the fields of the question's own hop stay behind`() throws {
        let hop = [
            "Connection: keep-alive, x-hop", "X-Hop: 1", "Keep-Alive: 5", "TE: trailers",
            "Content-Length: 0",
        ]
        let kept = [
            "Upgrade: websocket",
            "App-Attest-Key-Id: abc", "Content-Type: text/plain", "X-Forwarded-For: 192.0.2.1",
        ]
        let text = try #require(try asked(.authRequest, hop + Self.original + kept))
        let lines = text.split(separator: "\r\n").map(String.init)
        expectEqual(Array(lines.dropFirst(2)), kept)
        let head = try RequestHead.reading(text)
        expectEqual(head.framing, .none)
    }

    @Test(arguments: [
        ("Content-Length: 5", BodyFraming.length(5)), ("Transfer-Encoding: chunked", .chunked),
        ("Content-Length: 0", BodyFraming.none),
    ])
    func `the content of the question is that of the request`(
        line: String,
        framing: BodyFraming
    ) throws {
        let text = try #require(try asked(.authRequest, Self.original + [line]))
        try expectEqual(RequestHead.reading(text).framing, framing)
    }

    private static let length = "X-Original-Content-Length: "
    private static let partial = "x-envoy-auth-partial-body: "

    /// Content that a question may come with, and what is known of it then.
    private static let contents: [(DecisionForm, [String], AskedContent)] = [
        (.authRequest, [], .unseen), (.authRequest, [length + "0"], .whole),
        (.authRequest, [length + "5"], .unseen),
        (.authRequest, [length + "5", "Content-Length: 5"], .whole),
        (.authRequest, [length + "05", "Content-Length: 5"], .whole),
        (.authRequest, [length + "6", "Content-Length: 5"], .unseen),
        (.authRequest, [length + "0", "Content-Length: 5"], .unseen),
        (.authRequest, ["Content-Length: 5"], .unseen),
        (.authRequest, [length + "5", length + "5", "Content-Length: 5"], .unseen),
        (.authRequest, [length + "5", "X-original-content-length:", "Content-Length: 5"], .unseen),
        (.authRequest, [length + "+5", "Content-Length: 5"], .unseen),
        (.authRequest, [length + "5, 5", "Content-Length: 5"], .unseen),
        (.authRequest, [length + "18446744073709551621", "Content-Length: 5"], .unseen),
        (.authRequest, [length + "5", "Transfer-Encoding: chunked"], .counted(5)),
        (.forwardAuth, [], .whole), (.forwardAuth, ["Content-Length: 5"], .whole),
        (.forwardAuth, ["Transfer-Encoding: chunked"], .whole),
        (.extAuthz, [], .whole), (.extAuthz, ["Content-Length: 0"], .whole),
        (.extAuthz, ["Content-Length: 5"], .unseen),
        (.extAuthz, [partial + "false"], .unseen), (.extAuthz, [partial + "true"], .unseen),
        (.extAuthz, [partial + "false", "Content-Length: 5"], .whole),
        (.extAuthz, [partial + "true", "Content-Length: 5"], .unseen),
        (.extAuthz, [partial + "false", "Transfer-Encoding: chunked"], .unseen),
        (.extAuthz, [partial + "no", "Content-Length: 5"], .unseen),
        (.extAuthz, [partial + "false", partial + "true", "Content-Length: 5"], .unseen),
        (.extAuthz, [partial + "false", partial + "false", "Content-Length: 5"], .unseen),
        (.extAuthz, ["Upgrade: websocket"], .unseen),
    ]

    @Test(arguments: contents)
    func `content counts as whole only where the question says so`(
        form: DecisionForm,
        lines: [String],
        content: AskedContent
    ) throws {
        let text = (["POST / HTTP/1.1", "Host: a"] + lines).map { $0 + "\r\n" }.joined() + "\r\n"
        let bytes = Array(text.utf8)
        let head = try RequestHead.reading(text)
        let whole = DecisionQuestion(form, content: .whole)
        expectEqual(whole.askedContent(of: head, bytes.span), content, "\(form) \(lines)")
        expectEqual(DecisionQuestion(form).askedContent(of: head, bytes.span), .unseen)
    }

    @Test func `a preflight is still one`() throws {
        let lines = [
            "X-Original-Method: OPTIONS", "X-Original-URI: /", "X-Original-Host: a.example",
            "Origin: https://a.example", "Access-Control-Request-Method: POST",
        ]
        let text = try #require(try asked(.authRequest, lines))
        let bytes = Array(text.utf8)
        #expect(try RequestHead.reading(text).isPreflight(bytes.span))
        let forged = try #require(try asked(.authRequest, lines + ["X-HTTP-Method: DELETE"]))
        let other = Array(forged.utf8)
        #expect(try !RequestHead.reading(forged).isPreflight(other.span))
        let upgrade = try #require(try asked(.authRequest, lines + ["Upgrade: websocket"]))
        let more = Array(upgrade.utf8)
        #expect(try !RequestHead.reading(upgrade).isPreflight(more.span))
    }

    @Test(arguments: [
        (["Upgrade: websocket"], false), (["upgrade: WebSocket"], false), ([], false),
        (["Upgrade: h2c"], true), (["Upgrade: websocket, h2c"], true), (["Upgrade:"], true),
        (["Upgrade: websocket", "Upgrade: websocket"], true), (["HTTP2-Settings: x"], true),
        (["Upgrade: websocket/13"], true),
    ])
    func `of protocols a question may ask for WebSocket alone`(
        lines: [String],
        isForeign: Bool
    ) throws {
        let text = (["GET / HTTP/1.1", "Host: a"] + lines).map { $0 + "\r\n" }.joined() + "\r\n"
        let bytes = Array(text.utf8)
        let head = try RequestHead.reading(text)
        expectEqual(head.fields.asksForeignProtocol(bytes.span), isForeign, "\(lines)")
    }

    @Test func `each spelling of a name that counts is a twin`() throws {
        func hasTwin(_ name: String) throws -> Bool {
            let text = "GET / HTTP/1.1\r\nHost: a\r\n\(name): x\r\n\r\n"
            let bytes = Array(text.utf8)
            let guarded = FieldNameSet(["Idempotency-Key"])
            return try RequestHead.reading(text).fields.hasTwin(bytes.span, guarding: guarded)
        }
        for name in [
            "App-Attest-Key-Id", "App-Attest-Some-Name-That-Is-Longer-Than-Others",
            "X-HTTP-Method-Override", "X-Original-URL", "X-Rewrite-URL", "Idempotency-Key",
        ] {
            #expect(try !hasTwin(name), "\(name)")
            for mark in "_.!#$%&'*+^`|~" {
                let twin = name.replacing("-", with: String(mark))
                #expect(try hasTwin(twin), "\(twin)")
            }
        }
        for name in ["user_id", "x.y", "Keep-Alive-2", "My-App_Attest"] {
            #expect(try !hasTwin(name), "\(name)")
        }
    }
}
