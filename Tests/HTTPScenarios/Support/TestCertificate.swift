import Foundation
import LoopbackKit

/// A self-signed certificate and its key, made by the `openssl` program.
struct TestCertificate: Sendable {
    /// For 127.0.0.1 and `gateway.test`; made once for all tests.
    static let made: Result<TestCertificate, any Error> = Result { try shared() }

    private static func shared() throws -> TestCertificate {
        let folder = try TemporaryFolder.make()
        // The folder goes when the tests have ended.
        atexit {
            guard case .success(let made) = TestCertificate.made else { return }
            let file = URL(filePath: made.certificate)
            TemporaryFolder.remove(file.deletingLastPathComponent().path)
        }
        let names = "IP:127.0.0.1,DNS:gateway.test"
        return try TestCertificate("certificate", names: names, in: folder)
    }

    let certificate: String
    let key: String

    /// Makes one in a folder; `names` as `subjectAltName` takes them, `more` as `openssl req` does.
    init(
        _ name: String,
        names: String,
        days: Int = 20,
        in folder: String,
        more: [String] = []
    ) throws {
        certificate = "\(folder)/\(name).pem"
        key = "\(folder)/\(name).key"
        try Self.openssl(
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", String(days), "-subj", "/CN=\(name)",
                "-addext", "subjectAltName=\(names)", "-keyout", key, "-out", certificate,
            ] + more
        )
    }

    /// Runs `openssl` and returns what it prints.
    @discardableResult
    static func openssl(_ arguments: [String]) throws -> String {
        guard let openssl = ChildProcess.tool("openssl") else {
            throw ChildProcess.Failure(description: "no openssl")
        }
        let outcome = try ChildProcess.run(openssl, arguments)
        guard outcome.status == 0 else {
            throw ChildProcess.Failure(description: "openssl: \(outcome)")
        }
        return outcome.printed
    }
}
