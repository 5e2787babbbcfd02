import Cryptography
import Expectations
import HTTPWire
import Testing

@testable import Services

/// Who may ask for what on the operators' listener.
struct OperatorGateTests {
    private static let secret = "0123456789abcdef0123456789abcdef"

    private struct Tokens: OperatorTokenSource {
        let operatorToken: OperatorToken?

        init(_ text: String?) {
            operatorToken = text.flatMap { OperatorToken(file: Array($0.utf8)) }
        }
    }

    private struct Silent: Service {
        func answer(_ request: ServiceRequest) -> ServiceAnswer {
            .now(ServiceResult(LocalResponse(empty: .served)))
        }
    }

    private func table(_ gate: OperatorGate) -> ServiceTable {
        ServiceTable(
            below: "",
            for: .operators(gate),
            [
                ServiceEntry("probe", [.get], by: Silent()),
                ServiceEntry("page", [.get], on: .init(access: .page), by: Silent()),
                ServiceEntry("metrics", [.get], on: .init(access: .metrics), by: Silent()),
                ServiceEntry(
                    "lookup",
                    [.post],
                    on: .init(takesContent: true, access: .lookup),
                    by: Silent()
                ),
                ServiceEntry(
                    "call",
                    [.get, .post],
                    on: .init(takesContent: true, access: .call),
                    by: Silent()
                ),
            ]
        )
    }

    /// The name of the service that a request reaches, or why it reaches none.
    private func find(
        _ gate: OperatorGate,
        _ line: String,
        host: String = "127.0.0.1:9901",
        _ fields: String...
    ) throws -> String {
        let lines = ["\(line) HTTP/1.1", "Host: \(host)"] + fields + ["", ""]
        let text = Array(lines.joined(separator: "\r\n").utf8)
        var head = RequestHead()
        try head.read(text.span, isSecure: false, limits: HeadLimits())
        return switch table(gate).find(head, text.span) {
        case .service(let entry): entry.name
        case .refused(let response, _): response.outcome.reason
        case .none, .loop, .lastHop: "-"
        }
    }

    @Test(arguments: [
        ("127.0.0.1:9901", true), ("127.0.0.1", true), ("[::1]:9901", true), ("10.1.2.3", true),
        ("localhost:9901", true), ("LOCALHOST", true),
        ("attacker.example:9901", false), ("localhost.attacker.example", false),
        ("127.0.0.1.attacker.example", false), ("127.0.0.1.", false), ("0177.0.0.1", false),
        ("2130706433", false), ("localhost.", false),
    ])
    func `a page that was reached by a name is refused, since anybody's name may lead here`(
        host: String,
        isServed: Bool
    ) throws {
        let gate = OperatorGate()
        let expected = isServed ? "" : "host-refused"
        try expectEqual(find(gate, "GET /page", host: host), isServed ? "page" : expected)
        try expectEqual(find(gate, "GET /call", host: host), isServed ? "call" : expected)
        let own = "Origin: http://\(host)"
        try expectEqual(find(gate, "POST /call", host: host, own), isServed ? "call" : expected)
        // Also where it does not say that a browser sends it.
        try expectEqual(find(gate, "POST /call", host: host), isServed ? "call" : expected)
        // Probes, for which orchestrators ask by whatever name they know.
        try expectEqual(find(gate, "GET /probe", host: host), "probe")
    }

    @Test(arguments: [
        ("gateway.internal:9901", true), ("Gateway.INTERNAL", true), ("localhost", true),
        ("internal", false), ("gateway.internal.attacker.example", false),
        ("gateway.internal.", false), ("a.gateway.internal", false),
    ])
    func `a page and a call may be asked for by a name that is configured, and by no part of it`(
        host: String,
        isServed: Bool
    ) throws {
        let gate = OperatorGate(hosts: ["gateway.Internal"])
        let expected = isServed ? "" : "host-refused"
        try expectEqual(find(gate, "GET /page", host: host), isServed ? "page" : expected)
        try expectEqual(find(gate, "POST /call", host: host), isServed ? "call" : expected)
    }

    @Test(arguments: [
        ("Origin: http://127.0.0.1:9901", true), ("Origin: https://127.0.0.1:9901", true),
        ("ORIGIN: HTTP://127.0.0.1:9901", true), ("Sec-Fetch-Site: same-origin", true),
        ("Sec-Fetch-Site: none", true),
        ("Origin: http://attacker.example", false), ("Origin: null", false), ("Origin:", false),
        ("Origin: http://127.0.0.1", false), ("Origin: http://127.0.0.1:9902", false),
        ("Origin: http://127.0.0.1:9901.attacker.example", false),
        ("Origin: http://127.0.0.1:99011", false), ("Origin: 127.0.0.1:9901", false),
        ("Origin: http://", false), ("Origin: ftp://127.0.0.1:9901", false),
        ("Origin: http://127.0.0.1:9901\r\nOrigin: http://attacker.example", false),
        ("Sec-Fetch-Site: cross-site", false), ("Sec-Fetch-Site: same-site", false),
        ("Origin: http://127.0.0.1:9901\r\nSec-Fetch-Site: cross-site", false),
    ])
    func `a call that a browser sends for another site's page is refused`(
        fields: String,
        isServed: Bool
    ) throws {
        let expected = isServed ? "call" : "cross-site"
        try expectEqual(find(OperatorGate(), "POST /call", fields), expected)
        // Also with the token: a page that has it is the gateway's own.
        let gate = OperatorGate(tokens: Tokens(Self.secret))
        let token = "Authorization: Bearer \(Self.secret)"
        try expectEqual(find(gate, "POST /call", token, fields), expected)
    }

    private static let shown: [(String, String)] = [
        ("Authorization: Bearer \(secret)", "call"), ("authorization: bearer \(secret)", "call"),
        ("Authorization: Bearer  \(secret) ", "call"),
        ("X: 1", "token-missing"), ("Authorization: \(secret)", "token-missing"),
        ("Authorization: Basic \(secret)", "token-missing"),
        ("Authorization: Bearer", "token-missing"), ("Authorization: Bearer ", "token-missing"),
        ("Cookie: token=\(secret)", "token-missing"),
        ("Authorization: Bearer \(secret)0", "token-wrong"),
        ("Authorization: Bearer \(secret.dropLast())", "token-wrong"),
        ("Authorization: Bearer \(secret.uppercased())", "token-wrong"),
        ("Authorization: Bearer \(secret) \(secret)", "token-wrong"),
    ]

    @Test(arguments: shown)
    func `a call needs the token, whole, in its own field`(field: String, expected: String) throws {
        let gate = OperatorGate(tokens: Tokens(Self.secret))
        try expectEqual(find(gate, "POST /call", field), expected)
        try expectEqual(find(gate, "GET /call", field), expected)
        try expectEqual(find(gate, "POST /call?token=\(Self.secret)", "X: 1"), "token-missing")
        try expectEqual(find(gate, "GET /page", field), "page")
        try expectEqual(find(gate, "GET /probe", field), "probe")
    }

    @Test func `a listener answers what it serves, and knows no other path`() throws {
        let paths = ["GET /probe", "GET /metrics", "GET /page", "POST /lookup", "POST /call"]
        func answers(_ gate: OperatorGate, _ fields: String = "Accept: */*") throws -> [String] {
            try paths.map { try find(gate, $0, fields) }
        }
        try expectEqual(
            answers(OperatorGate(serving: [.open, .metrics])),
            ["probe", "metrics", "page-unknown", "page-unknown", "page-unknown"]
        )
        // Names are refused at each of them.
        let rebound = try find(
            OperatorGate(serving: [.metrics]),
            "GET /metrics",
            host: "attacker.example"
        )
        expectEqual(rebound, "host-refused")
        let reading = OperatorGate(
            serving: [.open, .metrics, .page, .lookup],
            tokens: Tokens(Self.secret)
        )
        try expectEqual(
            answers(reading),
            ["probe", "metrics", "page", "token-missing", "page-unknown"]
        )
        try expectEqual(
            answers(reading, "Authorization: Bearer \(Self.secret)"),
            ["probe", "metrics", "page", "lookup", "page-unknown"]
        )
        try expectEqual(
            find(
                reading,
                "POST /lookup",
                "Authorization: Bearer \(Self.secret)",
                "Origin: https://attacker.example"
            ),
            "cross-site"
        )
    }

    @Test func `where nobody has a token, nobody calls`() throws {
        let gate = OperatorGate(tokens: Tokens(nil))
        let token = "Authorization: Bearer \(Self.secret)"
        try expectEqual(find(gate, "POST /call", token), "token-wrong")
    }

    private static let lines: [(String, Bool)] = [
        (secret, true), ("\(secret)\n", true), (String(repeating: "a", count: 256), true),
        (String(secret.dropLast()), false), (String(repeating: "a", count: 257), false),
        ("", false), ("\(secret)\n\n", false), ("\(secret)\r\n", false), (" \(secret)", false),
        ("\(secret)\u{E9}", false), ("\(secret)\n\(secret)", false),
    ]

    @Test(arguments: lines)
    func `a token is one line of visible characters, long enough not to be guessed`(
        text: String,
        isToken: Bool
    ) {
        let token = OperatorToken(file: Array(text.utf8))
        expectEqual((token != nil), isToken)
        let line = text.split(separator: "\n").first.map(String.init) ?? ""
        if let token { expectEqual(token.authorization, "Bearer \(line)") }
    }
}
