import Cryptography
import Encodings
import Expectations
import Testing

@testable import Parties

struct ProviderTokenTests {
    private static let key = P256PrivateKey()
    private static let credential = AppleCredential(
        teamID: "TEAM123456",
        keyID: "ABC123DEFG",
        key: key
    )

    @Test func `a token names key, team and time, and verifies under the team's key`() throws {
        // Often, since r and s are short now and then.
        for second in 0..<300 as Range<Int64> {
            let token = ProviderToken(Self.credential, at: 1_800_000_000 + second)
            let parts = token.text.split(separator: ".")
            try #require(parts.count == 3)
            let header = try #require(Base64.decode(parts[0]))
            expectEqual(
                String(decoding: header, as: UTF8.self),
                #"{"alg":"ES256","kid":"ABC123DEFG"}"#
            )
            let claims = try #require(Base64.decode(parts[1]))
            expectEqual(
                String(decoding: claims, as: UTF8.self),
                #"{"iss":"TEAM123456","iat":\#(1_800_000_000 + second)}"#
            )
            let signature = try #require(Base64.decode(parts[2]))
            expectEqual(signature.count, 64)
            let signed = Array("\(parts[0]).\(parts[1])".utf8)
            let publicKey = Self.key.publicKey
            let isValid = { (message: [UInt8]) in
                publicKey.isValidJOSESignature(signature.span, message: message.span)
            }
            #expect(isValid(signed))
            #expect(!isValid(signed + [0]))
        }
    }

    @Test func `a token has no padding and no byte that a field can't carry`() {
        let text = ProviderToken(Self.credential, at: 1_800_000_000).text
        #expect(text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "=") })
    }

    @Test(
        arguments: [
            (0, true), (1, true), (2_999, true), (3_000, false), (3_600, false), (-1, false),
            (-86_400, false), (.max, false), (.min, false),
        ] as [(Int64, Bool)]
    )
    func `a token is used for fifty minutes, and not when the clock was set back`(
        _ seconds: Int64,
        _ isGood: Bool
    ) {
        let token = ProviderToken(Self.credential, at: 1_800_000_000)
        let now = Int64(1_800_000_000).addingReportingOverflow(seconds)
        expectEqual(token.isGood(at: now.overflow ? seconds : now.partialValue), isGood)
    }

    @Test func `a p8 file as Apple gives it is read`() throws {
        let credential = try AppleCredential(
            teamID: "TEAM123456",
            keyID: "ABC123DEFG",
            pem: Self.key.key.pem
        )
        expectEqual(credential, Self.credential)
        #expect(Self.key.key.pem.hasPrefix("-----BEGIN PRIVATE KEY-----"))
    }

    @Test(arguments: [
        ("", AppleKeyFault.noPrivateKey), ("no key", .noPrivateKey),
        ("-----BEGIN PUBLIC KEY-----\n", .noPrivateKey),
        ("-----BEGIN ENCRYPTED PRIVATE KEY-----\n", .encrypted),
        ("-----BEGIN EC PRIVATE KEY-----\n", .notPKCS8),
        ("-----BEGIN RSA PRIVATE KEY-----\n", .notPKCS8),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", .notP256),
        (ECPrivateKey(generating: .p384).pem, .notP256),
    ])
    func `another file is refused, and why is said`(_ pem: String, _ fault: AppleKeyFault) {
        #expect(throws: fault) {
            try AppleCredential(teamID: "TEAM123456", keyID: "ABC123DEFG", pem: pem)
        }
        #expect(!fault.found.isEmpty && !fault.use.isEmpty)
    }

    @Test(arguments: [
        ("TEAM123456", true), ("ABC123DEFG", true), ("TEAM12345", false), ("TEAM1234567", false),
        ("team123456", false), ("TEAM12345\"", false), ("", false), ("TÉAM12345", false),
    ])
    func `an id has ten capital letters and digits`(_ text: String, _ isID: Bool) {
        expectEqual(AppleCredential.isID(text), isID)
    }
}
