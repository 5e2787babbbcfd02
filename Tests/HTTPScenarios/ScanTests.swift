import Expectations
import Foundation
import Gateway
import LoopbackKit
import Testing

/// What testssl.sh, a scanner of TLS servers, says of a listener.
///
/// Beside the other tests: it waits for seconds between its connections, and they measure nothing
/// that a gateway with a client or two would change.
@Suite struct ScanTests {
    /// Findings that are not the gateway's to mend.
    private static let exceptions = [
        "DNS_CAArecord": "localhost has no zone, so nobody can write a CAA record for it",
        "security_headers": "what a page may do is for the application to say",
        "HSTS": "whether a host is HTTPS alone is for the application to say (RFC 6797)",
        "engine_problem": "speaks of the openssl that the scanner calls",
    ]

    /// A certificate as an authority makes it: with the address of its revocation list, and
    /// with more than the 60 days left below which testssl.sh warns.
    private static func show(in folder: String) throws -> (authority: String, tls: String) {
        let names = "DNS:localhost,IP:127.0.0.1"
        let authority = try TestCertificate("authority", names: names, days: 95, in: folder)
        let leaf = try TestCertificate(
            "leaf",
            names: names,
            days: 90,
            in: folder,
            more: ["-CA", authority.certificate, "-CAkey", authority.key]
                + ["-addext", "basicConstraints=critical,CA:FALSE"]
                + ["-addext", "keyUsage=critical,digitalSignature"]
                + ["-addext", "extendedKeyUsage=serverAuth"]
                + ["-addext", "crlDistributionPoints=URI:http://127.0.0.1:9/"]
        )
        let texts = try [leaf, authority].map {
            try String(contentsOfFile: $0.certificate, encoding: .utf8)
        }
        try texts.joined().write(toFile: leaf.certificate, atomically: true, encoding: .utf8)
        let files = "certificate: '\(leaf.certificate)', key: '\(leaf.key)'"
        return (authority.certificate, "tls: { \(files) }")
    }

    /// `PORTCULLIS_SCAN=all` has every check made: some minutes. By default those of
    /// protocols, certificate and HTTP.
    @Test func `a scanner of TLS servers finds nothing to mend`() throws {
        guard let testssl = ChildProcess.tool("testssl") else { return }
        let folder = try TemporaryFolder.make()
        defer { TemporaryFolder.remove(folder) }
        let origin = try TestOrigin()
        defer { origin.stop() }
        let (authority, tls) = try Self.show(in: folder)
        let gateway = try TestGateway(
            [("shop", [origin.address])],
            listen: "address: 127.0.0.1:0, http2: on, \(tls)"
        )
        defer { gateway.stop() }
        let isWhole = ProcessInfo.processInfo.environment["PORTCULLIS_SCAN"] == "all"
        let choice = isWhole ? [] : ["--protocols", "--server-defaults", "--headers"]
        var (rows, printed) = try Self.scan(testssl, choice, authority, gateway.port, folder)
        // On a loaded machine the scanner may give up on a connection. That says nothing of
        // the listener, so it looks again.
        for _ in 0..<4 {
            guard rows.contains(where: { $0[4].contains("connect problem") }) else { break }
            (rows, printed) = try Self.scan(testssl, choice, authority, gateway.port, folder)
        }
        #expect(rows.count > (isWhole ? 100 : 40), "\(printed)")
        let bad = rows.dropFirst().filter {
            !["OK", "INFO"].contains($0[3]) && Self.exceptions[$0[0]] == nil
        }
        expectEqual(bad, [], "\(printed)")
        let found = Dictionary(rows.map { ($0[0], $0[4]) }, uniquingKeysWith: { $1 })
        expectEqual(found["OCSP_stapling"], "not offered", "\(printed)")
        if isWhole { print("testssl.sh: \(rows.count - 1) findings, none to mend") }
    }

    /// The findings, each as id, host, port, severity and text, and what was printed.
    private static func scan(
        _ testssl: String,
        _ choice: [String],
        _ authority: String,
        _ port: UInt16,
        _ folder: String
    ) throws -> (rows: [[String]], printed: String) {
        let file = "\(folder)/findings-\(UUID().uuidString).csv"
        // A name server that does not answer would be waited for, hence `--nodns`.
        let outcome = try ChildProcess.run(
            testssl,
            ["--quiet", "--color", "0", "--warnings", "batch", "--add-ca", authority]
                + ["--csvfile", file, "--openssl-timeout", "20", "--nodns", "min"]
                + choice + ["https://localhost:\(port)/"],
            patience: 900
        )
        // "id","fqdn/ip","port","severity","finding","cve","cwe"
        let rows = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
            .map { $0.dropFirst().components(separatedBy: "\",\"") }
            .filter { $0.count > 4 }
        return (rows, outcome.printed)
    }
}
