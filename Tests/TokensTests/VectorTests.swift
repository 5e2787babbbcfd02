import Encodings
import Testing

@testable import Tokens

/// Tokens that standards print, with the keys that they print.
struct VectorTests {
    /// A token of a standard.
    struct Vector: CustomTestStringConvertible {
        let source: String
        let algorithm: TokenAlgorithm
        let key: String
        let token: String

        var testDescription: String { source }
    }

    static let vectors = [
        Vector(
            source: "RFC 7515 A.2",
            algorithm: .rs256,
            key: """
                {"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfH\
                Qp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ4\
                7soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapH\
                g665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGN\
                j8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}
                """,
            token: """
                eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9\
                leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2Vt\
                Qgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKB\
                YNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN\
                9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI\
                8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw
                """
        ),
        Vector(
            source: "RFC 7515 A.3",
            algorithm: .es256,
            key: """
                {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":\
                "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}
                """,
            token: """
                eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9\
                leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXF\
                CgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q
                """
        ),
        Vector(
            source: "RFC 8037 A.4",
            algorithm: .edDSA,
            key: """
                {"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
                """,
            token: """
                eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1P\
                POt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg
                """
        ),
    ]

    /// The key of the RFC verifies the text.
    private static func isValid(_ text: [UInt8], _ vector: Vector) -> Bool {
        let set = try? TokenKeySet(json: Array("{\"keys\":[\(vector.key)]}".utf8))
        guard let set, let token = SignedToken(text.span),
            let algorithm = TokenAlgorithm(rawValue: token.algorithm)
        else { return false }
        return set.isValid(
            token.signature,
            over: text.span.extracting(token.signed),
            keyID: token.keyID,
            algorithm: algorithm
        ) ?? false
    }

    @Test(arguments: vectors)
    func `a token of the standards is verified by its key`(_ vector: Vector) {
        #expect(Self.isValid(Array(vector.token.utf8), vector))
    }

    @Test(arguments: vectors)
    func `no token of the standards survives a changed character`(_ vector: Vector) {
        let text = Array(vector.token.utf8)
        for place in text.indices {
            var changed = text
            changed[place] = changed[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : 0x41
            #expect(!Self.isValid(changed, vector), "\(place)")
        }
    }

    @Test(arguments: vectors)
    func `no token of the standards survives a cut`(_ vector: Vector) {
        let text = Array(vector.token.utf8)
        for count in text.indices { #expect(!Self.isValid(Array(text[..<count]), vector)) }
        #expect(!Self.isValid(text + [UInt8(ascii: "=")], vector))
        #expect(!Self.isValid(text + [UInt8(ascii: ".")], vector))
        #expect(!Self.isValid(text + [0x20], vector))
    }

    @Test(arguments: vectors)
    func `the key of another algorithm verifies no token`(_ vector: Vector) {
        for other in Self.vectors where other.algorithm != vector.algorithm {
            let mixed = Vector(
                source: "",
                algorithm: other.algorithm,
                key: other.key,
                token: vector.token
            )
            #expect(!Self.isValid(Array(vector.token.utf8), mixed))
        }
    }
}
