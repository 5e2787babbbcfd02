import Expectations
import Testing

@testable import ConfigurationReading

/// `minimum`, `ciphers` and `curves` of TLS, and `crl` of its clients.
@Suite struct TLSTermTests {
    private static let files = ["c.pem": "", "k.pem": "", "l.crl": "", "lists/a.crl": ""]

    private func loaded(_ tls: String, origin: String = "verify") -> LoadedConfiguration {
        load(
            """
            listen: [{ address: "127.0.0.1:0", tls: { certificate: c.pem, key: k.pem\(tls) } }]
            origins: { o: { servers: ["o:80"], tls: \(origin) } }
            default: { origin: o, mode: off }
            """,
            files: Self.files
        )
    }

    private static let old = "ECDHE-RSA-AES256-GCM-SHA384"
    private static let new = "TLS_AES_256_GCM_SHA384"

    @Test func `lists are kept in their order, those of each version for itself`() throws {
        let ciphers = "ciphers: [\(Self.new), \(Self.old), TLS_AES_128_GCM_SHA256]"
        let text = "\(ciphers), curves: [P-384, X25519MLKEM768, X25519]"
        let read = loaded(", \(text)", origin: "{ \(text) }")
        expectEqual(read.problems.map(\.text), [])
        let configuration = try #require(read.configuration)
        let listener = try #require(configuration.listeners.first?.tls?.terms)
        for terms in [listener, try #require(configuration.origins.first?.tls?.terms)] {
            expectEqual(terms.ciphers(of: .tls13), [Self.new, "TLS_AES_128_GCM_SHA256"])
            expectEqual(terms.ciphers(of: .tls12), [Self.old])
            expectEqual(terms.curves, ["P-384", "X25519MLKEM768", "X25519"])
            expectEqual(terms.serves(rsa: true), true)
            expectEqual(terms.serves(rsa: false), false)
        }
        let plain = try #require(loaded("").configuration?.listeners.first?.tls?.terms)
        expectEqual(plain.ciphers(of: .tls12) + plain.ciphers(of: .tls13) + plain.curves, [])
        expectEqual(plain.serves(rsa: true) && plain.serves(rsa: false), true)
    }

    @Test(arguments: [
        "AES128-SHA", "ECDHE-RSA-AES128-SHA256", "DHE-RSA-AES128-GCM-SHA256", "ALL",
        "TLS_AES_128_CCM_8_SHA256", "@SECLEVEL=0", "!AES", "ECDHE-ECDSA-AES128-GCM-SHA256:ALL",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "NULL", "DEFAULT",
    ])
    func `no other cipher suite can be named`(name: String) {
        let list = "[\(Self.new), \(Self.old), \"\(name)\"]"
        for read in [loaded(", ciphers: \(list)"), loaded("", origin: "{ ciphers: \(list) }")] {
            #expect(read.configuration == nil)
            let errors = read.errors.map(\.text)
            expectEqual(errors.count, 1, "\(errors)")
            #expect(errors.first?.contains("tls.ciphers[2]: found \"\(name)\"") == true)
        }
    }

    @Test(arguments: ["P-224", "secp256k1", "X448", "ffdhe2048", "?X25519", "X25519:P-256", "*"])
    func `no other group can be named`(name: String) {
        let errors = loaded(", curves: [\"\(name)\"]").errors.map(\.text)
        expectEqual(errors.count, 1, "\(errors)")
        let place = "p.yaml:1: listen[0].tls.curves[0]: found \"\(name)\"; use X25519, P-256, P-384"
        #expect(errors.first?.hasPrefix(place) == true, "\(errors)")
    }

    @Test(arguments: [
        ("ciphers: [\(old)]", "ciphers: found no suite of TLS 1.3; use one or more of TLS_AES_128"),
        ("ciphers: [\(new)]", "ciphers: found no suite of TLS 1.2, which is accepted; use minimum"),
        (
            "minimum: 1.3, ciphers: [\(new), \(old)]",
            "ciphers: found \(old) of TLS 1.2 beside minimum: 1.3; use suites of TLS 1.3 alone"
        ),
        ("curves: [X25519MLKEM768]", "curves: found no group of TLS 1.2, which is accepted"),
        ("curves: []", "curves: found an empty list"),
        ("ciphers: \(new)", "ciphers: found \"\(new)\"; use a list of"),
        ("curves: [P-256, P-256]", "curves[1]: found \"P-256\" again; use it once"),
        ("ssl_ciphers: ALL", "ssl_ciphers: found an unknown key; use ciphers: [TLS_AES_128_GCM"),
        ("ssl_ecdh_curve: X", "ssl_ecdh_curve: found an unknown key; use curves: [X25519"),
    ])
    func `a list that leaves a version without an algorithm is refused`(
        text: String,
        problem: String
    ) {
        let errors = loaded(", \(text)").errors.map(\.text)
        expectEqual(errors.count, 1, "\(errors)")
        #expect(errors.first?.hasPrefix("p.yaml:1: listen[0].tls.\(problem)") == true, "\(errors)")
    }

    @Test func `a version with suites of its own alone is a choice`() {
        for text in [
            "minimum: 1.3, ciphers: [\(Self.new)]", "minimum: 1.3, curves: [X25519MLKEM768]",
        ] {
            expectEqual(loaded(", \(text)").problems.map(\.text), [])
        }
    }

    @Test func `lists of revoked certificates are a file or a folder`() throws {
        for (path, problem) in [
            ("l.crl", nil), ("lists", nil), ("none.crl", "found no such file (none.crl)"),
        ] {
            let read = loaded(", client: { ca: c.pem, crl: \(path), require: required }")
            guard let problem else {
                expectEqual(read.problems.map(\.text), [])
                let tls = try #require(read.configuration?.listeners.first?.tls)
                expectEqual(tls.client?.revocationPath, path)
                #expect(tls.files.contains(path))
                continue
            }
            let errors = read.errors.map(\.text)
            #expect(errors.contains { $0.contains("tls.client.crl: \(problem)") }, "\(errors)")
        }
    }
}
