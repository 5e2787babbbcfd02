import EventLoops
import Expectations
import Testing

/// The versions and algorithms that a session may use.
@Suite struct TermsTests {
    private static func context(_ terms: TLSTerms) throws -> TLSContext {
        let certificates = try TestCertificates.shared.get()
        return try TLSContext(
            serverCertificateChain: certificates.chain("server"),
            key: certificates.key("server"),
            terms: terms
        )
    }

    /// What a server of these terms and a client of others speak; `nil` for nothing.
    private static func suite(_ server: TLSTerms, _ client: TLSTerms) throws -> String? {
        var pair = try SessionPair(accepting: context(server), offering: client)
        pair.exchange()
        guard pair.server.isEstablished else {
            expectEqual(pair.serverOutcome.reason, .noSharedCipher)
            return nil
        }
        return pair.server.suite
    }

    private static let aes128 = "TLS_AES_128_GCM_SHA256"
    private static let aes256 = "TLS_AES_256_GCM_SHA384"
    private static let chacha20 = "TLS_CHACHA20_POLY1305_SHA256"

    @Test func `a listener takes the best suite of its list that the client has`() throws {
        let listed = TLSTerms(suites: [Self.aes128, Self.aes256])
        expectEqual(try Self.suite(listed, TLSTerms()), "TLSv1.3 \(Self.aes128)")
        let client = TLSTerms(suites: [Self.chacha20, Self.aes256])
        expectEqual(try Self.suite(listed, client), "TLSv1.3 \(Self.aes256)")
        expectEqual(try Self.suite(listed, TLSTerms(suites: [Self.chacha20])), nil)
    }

    @Test func `groups that are not listed are not used`() throws {
        let server = TLSTerms(groups: ["P-384", "P-256"])
        let suite = try Self.suite(server, TLSTerms(groups: ["X25519", "P-256"]))
        expectEqual(suite?.hasPrefix("TLSv1.3 "), true)
        expectEqual(try Self.suite(server, TLSTerms(groups: ["X25519"])), nil)
    }

    @Test func `what the linked OpenSSL lacks is an error with its name, and nothing is left out`()
        throws
    {
        let rows: [(TLSTerms, TLSContextError.Reason, String)] = [
            (TLSTerms(ciphers: ["NONE-SUCH"]), .cipherUnsupported, "NONE-SUCH"),
            (
                TLSTerms(ciphers: ["ECDHE-RSA-AES128-GCM-SHA256", "NONE-SUCH"]),
                .cipherUnsupported, "NONE-SUCH"
            ),
            (TLSTerms(suites: [Self.aes128, "TLS_NONE"]), .cipherUnsupported, "TLS_NONE"),
            (TLSTerms(suites: ["TLS_NONE"]), .cipherUnsupported, "TLS_NONE"),
            (TLSTerms(groups: ["X25519", "P-257"]), .groupUnsupported, "P-257"),
        ]
        for (terms, reason, name) in rows {
            let error = #expect(throws: TLSContextError.self) { try Self.context(terms) }
            expectEqual(error?.reason, reason)
            expectEqual(error?.detail.hasPrefix("\(name), which OpenSSL 3."), true, "\(name)")
        }
    }

    @Test func `a certificate says whether RSA's suites are its own`() throws {
        expectEqual(try Self.context(TLSTerms()).certificates.map(\.signsByRSA), [false])
    }
}
