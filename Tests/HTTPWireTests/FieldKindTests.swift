import HTTPWire
import Testing

struct FieldKindTests {
    private static func kind(_ name: String) throws -> FieldKind {
        let head = try ResponseHead.reading("HTTP/1.1 200 OK\r\n\(name): 1\r\n\r\n")
        return head.fields.fields[0].kind
    }

    @Test(
        arguments: [
            ("Date", .date), ("dATE", .date), ("Dat", .other), ("Dates", .other),
            ("X-Forwarded-For", .xForwardedFor), ("X-Forwarded-", .xForwardedOther),
            ("X-Forwarded-Something-Very-Long-Indeed", .xForwardedOther),
            ("X-Forwarded", .xForwardedOther), ("X-Forwarde", .other),
            ("App.Attest.Verdict", .disguised), ("X~Forwarded-For", .disguised),
            ("X.Forwarded.Something-Very-Long-Indeed", .disguised), ("X.Y", .other),
            ("App-Attest-Key-ID", .appAttestKeyID), ("App-Attest-Anything", .appAttestOther),
            ("x-app-ATTEST-verified", .appAttestOther), ("App-Attes", .other),
            ("X-App-Attest", .other), ("X_Forwarded_For", .underscored), ("_", .underscored),
            ("X-A-Name-Of-More-Than-24-Octets_", .underscored),
            ("X-HTTP-Method-Override", .methodOverride),
            ("Proxy-Authorization", .proxyAuthorization), ("Server", .server), ("Servers", .other),
            ("Host~", .other), ("Proxy", .proxy), ("C^te", .other),
        ] as [(String, FieldKind)]
    )
    func `a name is known in any case and only as a whole`(_ name: String, _ kind: FieldKind) throws
    {
        #expect(try Self.kind(name) == kind)
    }

    @Test func `the kinds fit one word`() {
        #expect(FieldKind.allCases.count < 64)
        #expect(
            FieldKindSet(FieldKind.allCases).rawValue.nonzeroBitCount == FieldKind.allCases.count
        )
    }

    @Test func `a set of names is asked without case`() {
        let set = FieldNameSet(["X-One", "A"])
        let octets = Array("x-oneX-Ones".utf8)
        let answers = [0..<5, 5..<11, 0..<1].map { set.contains(octets.span, $0) }
        #expect(answers == [true, false, false])
        #expect(FieldNameSet().isEmpty && !set.isEmpty)
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
