import Encodings
import Expectations
import SoftwareAuthenticator
import Testing

@testable import Tokens

/// Tokens of Play Integrity's classic requests: JWE around JWS.
struct ClassicTokenKeysTests {
    private static let console = SoftwarePlayConsole()
    private static let payload = #"{"requestDetails":{}}"#

    private static func keys(_ console: SoftwarePlayConsole) throws -> ClassicTokenKeys {
        func key(_ text: String) throws -> [UInt8] {
            try #require(ClassicTokenKeys.key(ofFile: Array((text + "\r\n").utf8)))
        }
        return try #require(
            ClassicTokenKeys(
                decryption: key(console.decryptionKey),
                verification: key(console.verificationKey)
            )
        )
    }

    private static func fault(_ token: String, _ keys: ClassicTokenKeys) -> TokenFault? {
        let text = Array(token.utf8)
        do throws(TokenFault) {
            _ = try keys.payload(of: text.span)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a token is read with the console's two keys`() throws {
        let token = Array(try Self.console.token(Self.payload).utf8)
        let payload = try Self.keys(Self.console).payload(of: token.span)
        expectEqual(payload, Array(Self.payload.utf8))
        let named = try Self.console.token(
            Self.payload,
            header: #"{"typ":"JWT","kid":"1","alg":"A256KW","enc":"A256GCM","cty":"JWT"}"#
        )
        expectEqual(Self.fault(named, try Self.keys(Self.console)), nil)
    }

    @Test func `no character of a token can be changed, and none left out`() throws {
        let keys = try Self.keys(Self.console)
        let token = try Self.console.token(Self.payload)
        let text = Array(token.utf8)
        for index in text.indices {
            var changed = text
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : 0x41
            #expect(Self.fault(String(decoding: changed, as: UTF8.self), keys) != nil, "\(index)")
            changed.remove(at: index)
            #expect(Self.fault(String(decoding: changed, as: UTF8.self), keys) != nil, "\(index)")
        }
        for more in [".", "=", "A", "\n", " "] {
            #expect(Self.fault(token + more, keys) != nil)
        }
        expectEqual(Self.fault("", keys), .malformed)
        let long = try Self.console.token(String(repeating: "x", count: 8_192))
        expectEqual(Self.fault(long, keys), .malformed)
    }

    @Test func `another key of either kind reads nothing`() throws {
        let token = try Self.console.token(Self.payload)
        let other = SoftwarePlayConsole()
        expectEqual(Self.fault(token, try Self.keys(other)), .unknownKey)
        func key(_ text: String) -> [UInt8] {
            ClassicTokenKeys.key(ofFile: Array(text.utf8)) ?? []
        }
        let mixed = try #require(
            ClassicTokenKeys(
                decryption: key(Self.console.decryptionKey),
                verification: key(other.verificationKey)
            )
        )
        expectEqual(Self.fault(token, mixed), .signature)
    }

    @Test(arguments: [
        (#"{"alg":"dir","enc":"A256GCM"}"#, TokenFault.algorithm),
        (#"{"alg":"A128KW","enc":"A256GCM"}"#, .algorithm),
        (#"{"alg":"A256KW","enc":"A128GCM"}"#, .algorithm),
        (#"{"alg":"A256KW","enc":"A256GCM","zip":"DEF"}"#, .algorithm),
        (#"{"alg":"A256KW","enc":"A256GCM","crit":"x"}"#, .algorithm),
        (#"{"alg":"A256KW","alg":"A256KW","enc":"A256GCM"}"#, .malformed),
        (#"{"alg":"A256KW","enc":"A256GCM","crit":["x"]}"#, .malformed),
        (#"{"alg":"A256KW","enc":"A256GCM"} x"#, .malformed), ("{", .malformed),
    ])
    func `a header says what it has to say, and no more`(_ header: String, _ fault: TokenFault)
        throws
    {
        let token = try Self.console.token(Self.payload, header: header)
        expectEqual(Self.fault(token, try Self.keys(Self.console)), fault)
    }

    @Test(arguments: [
        (#"{"alg":"none"}"#, TokenFault.algorithm), (#"{"alg":"HS256"}"#, .algorithm),
        (#"{"alg":"RS256"}"#, .algorithm), (#"{"alg":"ES256","crit":["b64"]}"#, .malformed),
        ("{}", .malformed),
    ])
    func `the inner token is signed with ES256`(_ header: String, _ fault: TokenFault) throws {
        let token = try Self.console.token(Self.payload, inner: header)
        expectEqual(Self.fault(token, try Self.keys(Self.console)), fault)
    }

    @Test func `other keys than the console's are none`() {
        expectEqual(ClassicTokenKeys.key(ofFile: Array("  \n".utf8)), nil)
        expectEqual(ClassicTokenKeys.key(ofFile: Array("not base64!".utf8)), nil)
        #expect(!ClassicTokenKeys.isDecryptionKey([UInt8](repeating: 0, count: 16)))
        #expect(!ClassicTokenKeys.isVerificationKey([UInt8](repeating: 0, count: 91)))
        let key = ClassicTokenKeys.key(ofFile: Array(Self.console.verificationKey.utf8)) ?? []
        #expect(ClassicTokenKeys.isVerificationKey(key))
        #expect(!ClassicTokenKeys.isVerificationKey(key + [0]))
        #expect(!ClassicTokenKeys.isVerificationKey(Array(key.dropLast())))
    }
}
