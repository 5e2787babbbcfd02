import HTTPWire
import Testing

/// What is a CORS preflight.
@Suite struct PreflightTests {
    private static let asked = ["Origin: https://a.example", "Access-Control-Request-Method: POST"]

    private func isPreflight(
        _ lines: [String],
        _ line: String = "OPTIONS /v1/orders?dry=1 HTTP/1.1"
    ) throws -> Bool {
        let text = ([line, "Host: api.example.com"] + lines).map { $0 + "\r\n" }.joined() + "\r\n"
        let bytes = Array(text.utf8)
        return try RequestHead.reading(text).isPreflight(bytes.span)
    }

    @Test(arguments: [
        [],
        [
            "Accept: */*", "Access-Control-Request-Headers: app-attest-assertion,content-type",
            "Access-Control-Request-Private-Network: true", "Connection: keep-alive",
            "Sec-Fetch-Mode: cors", "User-Agent: x", "Referer: https://a.example/",
        ],
        ["Content-Length: 0"], ["X-Forwarded-For: 192.0.2.1", "X-Real-IP: 192.0.2.1"],
        ["X-Envoy-Internal: true", "X-Original-Host: a.example", "user_id: 1"],
    ])
    func `what browsers send is one`(more: [String]) throws {
        #expect(try isPreflight(Self.asked + more))
    }

    @Test(arguments: [
        "Cookie: a=b", "Authorization: Bearer x", "App-Attest-Key-Id: x",
        "App-Attest-Assertion: x", "App-Attest-Challenge: x", "App-Attest-Unsupported: 1",
        "App-Attest-Anything: x", "Content-Length: 1", "Transfer-Encoding: chunked",
        "Content-Type: text/plain", "Content-Digest: x", "X-HTTP-Method-Override: DELETE",
        "X-Method-Override: DELETE", "X-HTTP-Method: DELETE", "X-Original-Method: DELETE",
        "X_HTTP_Method_Override: DELETE", "X.HTTP.Method.Override: DELETE",
        "X-Original-URL: /x", "X-Rewrite-URL: /x", "X.Original.URL: /x", "x_rewrite_url: /x",
        "X-Envoy-Original-Path: /x", "X-Script-Name: /x", "App.Attest.Verdict: pass",
        "Upgrade: websocket", "HTTP2-Settings: x", "Connection: origin", "Connection: x-a",
        "Origin: https://b.example", "access-control-request-method: PUT",
    ])
    func `what has more than a question is none`(line: String) throws {
        #expect(try !isPreflight(Self.asked + [line]))
    }

    @Test(arguments: [
        ["Origin: https://a.example"], ["Access-Control-Request-Method: POST"],
        ["Origin:", "Access-Control-Request-Method: POST"],
        ["Origin: a", "Access-Control-Request-Method:"],
        ["Origin: a", "Access-Control-Request-Methods: POST"], [],
    ])
    func `both fields make one`(lines: [String]) throws {
        #expect(try !isPreflight(lines))
    }

    @Test(arguments: [
        "GET / HTTP/1.1", "POST / HTTP/1.1", "OPTIONS * HTTP/1.1",
        "OPTIONS http://api.example.com/ HTTP/1.1",
    ])
    func `no other request line is one`(line: String) throws {
        #expect(try !isPreflight(Self.asked, line))
    }
}
