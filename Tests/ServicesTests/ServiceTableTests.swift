import Expectations
import HTTPWire
import Testing

@testable import Services

@Suite struct ServiceTableTests {
    /// Says that it was asked.
    private struct Named: Service {
        func answer(_ request: ServiceRequest) -> ServiceAnswer {
            .now(ServiceResult(LocalResponse(.served, as: "text/plain", request.content)))
        }
    }

    private func table(below prefix: String, for audience: ServiceTable.Audience) -> ServiceTable {
        ServiceTable(
            below: prefix,
            for: audience,
            [
                ServiceEntry(
                    "keys",
                    [.post],
                    on: .init(takesContent: true, cost: .call),
                    by: Named()
                ),
                ServiceEntry("page", [.get, .head], by: Named()),
            ]
        )
    }

    /// What becomes of a request, in words: `-`, the service's name, or reason and log name.
    private func find(_ table: ServiceTable, _ line: String, _ field: String = "") throws -> String
    {
        let text = Array("\(line) HTTP/1.1\r\nHost: a\r\n\(field)\r\n".utf8)
        var head = RequestHead()
        try head.read(text.span, isSecure: false, limits: HeadLimits())
        return switch table.find(head, text.span) {
        case .none: "-"
        case .loop: "loop"
        case .lastHop: "last hop"
        case .service(let entry): entry.name
        case .refused(let response, let name): "\(response.outcome.reason) \(name)"
        }
    }

    @Test(arguments: [
        ("POST /own/keys", "keys"), ("POST /own/keys?a=1", "keys"), ("GET /own/page", "page"),
        ("POST http://a/own/keys", "keys"),
        ("GET /own/keys", "method-not-allowed wrong-method"),
        ("HEAD /own/keys", "method-not-allowed wrong-method"),
        ("POST /own/page", "method-not-allowed wrong-method"),
        ("POST /own/", "no-such-endpoint unknown"), ("POST /own/key", "no-such-endpoint unknown"),
        ("POST /own/keys/", "no-such-endpoint unknown"),
        ("POST /own/KEYS", "no-such-endpoint unknown"),
        ("POST /own/%6beys", "no-such-endpoint unknown"),
        ("POST /own", "-"), ("POST /ownkeys", "-"), ("POST /", "-"), ("OPTIONS *", "-"),
        ("POST /other/keys", "-"), ("POST //own/keys", "-"), ("POST /Own/keys", "-"),
    ])
    func `a path below the prefix is the gateway's, byte by byte, and no other`(
        line: String,
        expected: String
    ) throws {
        try expectEqual(find(table(below: "/own", for: .clients(nil)), line), expected)
    }

    @Test(arguments: [
        ("POST /keys", "keys"), ("HEAD /page", "page"), ("GET /", "page-unknown unknown"),
        ("OPTIONS *", "page-unknown unknown"), ("GET /page/", "page-unknown unknown"),
        ("PURGE /page", "method-refused wrong-method"), ("GET http://a", "page-unknown unknown"),
    ])
    func `where nothing is forwarded, every path is the gateway's`(
        line: String,
        expected: String
    ) throws {
        try expectEqual(find(table(below: "", for: .operators(OperatorGate())), line), expected)
    }

    @Test(arguments: [
        ("POST /nothing", "Content-Length: 1", "page-unknown unknown"),
        ("POST /page", "Content-Length: 1", "method-refused wrong-method"),
        ("GET /page", "Content-Length: 1", "content-refused page"),
        ("GET /page", "Transfer-Encoding: chunked", "content-refused page"),
        ("GET /page", "Content-Length: 0", "page"),
        ("POST /keys", "Content-Length: 1", "keys"),
    ])
    func `a request is refused by path, then method, then content`(
        line: String,
        field: String,
        expected: String
    ) throws {
        let table = table(below: "", for: .operators(OperatorGate()))
        try expectEqual(find(table, line, field + "\r\n"), expected)
    }

    @Test(arguments: [
        ("POST /own/keys", "Via: 1.1 portcullis", "loop"), ("GET /", "Via: 1.1 portcullis", "loop"),
        ("OPTIONS /own/keys", "Via: 1.1 portcullis\r\nMax-Forwards: 0", "loop"),
        ("OPTIONS /own/keys", "Max-Forwards: 0", "last hop"),
        ("OPTIONS *", "Max-Forwards: 0", "last hop"), ("OPTIONS *", "Max-Forwards: 1", "-"),
        ("POST /own/keys", "Max-Forwards: 0", "keys"), ("POST /own/keys", "Via: 1.1 a", "keys"),
    ])
    func `a loop and a last hop are found before any path`(
        line: String,
        field: String,
        expected: String
    ) throws {
        let table = table(below: "/own", for: .clients(nil))
        try expectEqual(find(table, line, field + "\r\n"), expected)
    }

    @Test func `an unknown page lists the pages, an unknown endpoint lists nothing`() throws {
        let text = Array("GET /own/x HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        var head = RequestHead()
        try head.read(text.span, isSecure: false, limits: HeadLimits())
        for (table, lists) in [
            (table(below: "/own", for: .clients(nil)), false),
            (table(below: "", for: .operators(OperatorGate())), true),
        ] {
            guard case .refused(let response, _) = table.find(head, text.span) else {
                Issue.record("served")
                continue
            }
            let document = String(decoding: response.content, as: UTF8.self)
            expectEqual(document.contains(#""pages":["/keys","/page"]"#), lists)
        }
    }
}
