import Expectations
import HTTPWire
import Testing

@testable import Verification

/// Which cookie is taken, and where servers could read another one.
@Suite struct CookieNameTests {
    /// `=` and the value, `nothing` or `unclear`.
    private static func found(_ field: [UInt8], _ name: String = "session") -> String {
        let field = [0x3D] + field + [0x3D]
        let finding = CookieName(Array(name.utf8)).finding(in: field.span, 1..<field.count - 1)
        switch finding {
        case .nothing: return "nothing"
        case .unclear: return "unclear"
        case .value(let range): return "=" + String(decoding: field[range], as: UTF8.self)
        }
    }

    private static func found(_ field: String, _ name: String = "session") -> String {
        found(Array(field.utf8), name)
    }

    @Test(arguments: [
        ("session=GOOD", "=GOOD"), ("a=b; session=GOOD", "=GOOD"),
        ("a=b;session=GOOD", "=GOOD"), ("a=b;\t session=GOOD \t; c=d", "=GOOD"),
        ("session=", "="), ("session=a=b", "=a=b"), ("session=\"GOOD\"", "=\"GOOD\""),
        ("session=GOOD x", "=GOOD x"), ("", "nothing"), ("a=b; c=d", "nothing"),
        ("xsession=EVIL", "nothing"), ("session2=EVIL", "nothing"), ("my-session=EVIL", "nothing"),
        ("x=session", "nothing"), ("%41session=EVIL", "nothing"), ("a=%20session", "nothing"),
        ("xsession=EVIL; session=GOOD; sessionx=EVIL", "=GOOD"),
    ])
    func `a cookie that all servers read in the same way is taken`(_ field: String, _ is: String) {
        expectEqual(Self.found(field), `is`)
    }

    /// Where some server reads the other value: see ``CookieName``.
    @Test(arguments: [
        "session =EVIL; session=GOOD", "session\t=EVIL; session=GOOD",
        "session\u{A0}=EVIL; session=GOOD", "session\u{2003}=EVIL; session=GOOD",
        "session \t =EVIL; session=GOOD", "\u{A0}session=EVIL; session=GOOD",
        "session=GOOD; x=y session=EVIL", "session=GOOD x session=EVIL",
        "session=GOOD\tsession=EVIL", "session=GOOD,session=EVIL", "session=GOOD, session=EVIL",
        "session=GOOD; x=y,session=EVIL", "session=EVIL; session=GOOD",
        "x=\"; session=EVIL\"; session=GOOD", "x=\"session=EVIL\"; session=GOOD",
        "Session=EVIL; session=GOOD", "SESSION=EVIL; session=GOOD",
        "%73ession=EVIL; session=GOOD", "sessio%6E=EVIL; session=GOOD",
        "%73%65%73%73%69%6f%6e=EVIL; session=GOOD", "%20session=EVIL; session=GOOD",
        "+session=EVIL; session=GOOD", "session%20=EVIL; session=GOOD",
        "session%00x=EVIL; session=GOOD", "session[]=EVIL; session=GOOD",
        "session[a][b]=EVIL; session=GOOD", "session[=EVIL; session=GOOD",
        "x/session=EVIL; session=GOOD", "(session=EVIL; session=GOOD",
        "x:session=EVIL;session=GOOD",
        "session; session=GOOD", "session ; session=GOOD", "session=GOOD; session",
        "session=GOOD;session=", "\"session\"=EVIL; session=GOOD", "session\"=EVIL; session=GOOD",
        "session=session=GOOD",
        // Envoy's question has `!` for a byte that is not UTF-8.
        "session!=EVIL; session=GOOD", "session=GOOD; !session=EVIL",
    ])
    func `where some server reads another value, the cookie is unclear`(_ field: String) {
        expectEqual(Self.found(field), "unclear")
        // What comes behind it changes nothing.
        expectEqual(Self.found(field + "; a=b"), "unclear")
        expectEqual(Self.found("a=b; " + field), "unclear")
    }

    @Test(arguments: [
        "Session=A", "session =A", " x=y session=A", "%73ession=A", "session", "a,session=A",
    ])
    func `a cookie that only some servers read is unclear alone, too`(_ field: String) {
        expectEqual(Self.found(field), "unclear")
    }

    @Test(arguments: [
        "app.session=EVIL", "app session=EVIL", "app[session=EVIL", "app+session=EVIL",
        "app%2Esession=EVIL", "app%20session=EVIL", "APP_session=EVIL",
    ])
    func `what PHP makes of a name is the name`(_ field: String) {
        for name in ["app_session", "app.session"] {
            let field = "\(field); \(name)=GOOD"
            expectEqual(Self.found(field, name), "unclear", "\(name)")
        }
        // PHP makes `_` of the space, others drop it.
        expectEqual(Self.found("app =EVIL; app_=GOOD", "app_"), "unclear")
        expectEqual(Self.found("app_session=GOOD; app=b", "app_session"), "=GOOD")
    }

    @Test func `a byte that is no UTF-8 parts names, and is dropped behind them`() {
        let good = Array("; session=GOOD".utf8)
        for byte in UInt8(0x80)...0xFF {
            expectEqual(Self.found(Array("session".utf8) + [byte, 0x3D, 0x45] + good), "unclear")
            expectEqual(Self.found([0x78, byte] + Array("session=E".utf8) + good), "unclear")
        }
    }

    @Test func `a name that is percent-encoded in the configuration is read as it stands`() {
        expectEqual(Self.found("%41=GOOD", "%41"), "=GOOD")
        expectEqual(Self.found("%41=GOOD; %41=EVIL", "%41"), "unclear")
    }

    /// A field of many marks and blanks is read in time that grows with its length.
    @Test func `no field takes long to read`() {
        for (piece, name) in [(" ", "_"), ("=", "a"), ("[", "_"), ("a=", "a"), ("% ", "%")] {
            let field = String(repeating: piece, count: 65_536 / piece.utf8.count)
            let begin = ContinuousClock.now
            _ = Self.found("x" + field, name + "b")
            _ = Self.found("x" + field, name)
            #expect(ContinuousClock.now - begin < .seconds(10), "\(piece)")
        }
    }
}
