import Foundation

/// Keys and certificates made by the `openssl` program, once for all tests, in a folder of their
/// own.
struct TestCertificates {
    /// Made on first use; the reason, when that failed.
    static let shared = Result { try TestCertificates() }

    let folder: String

    /// The certificate of the authority that signs the others.
    var authority: String { folder + "/ca.pem" }
    /// An authority that signed none of the others.
    var stranger: String { folder + "/stranger.pem" }

    func chain(_ name: String) -> String { "\(folder)/\(name).pem" }
    func key(_ name: String) -> String { "\(folder)/\(name).key" }
    /// A list of revoked certificates.
    func list(_ name: String) -> String { "\(folder)/\(name).crl" }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private init() throws {
        defer {
            // The folder goes when the tests have ended; nobody is left to hear of a failure.
            atexit {
                guard case .success(let made) = TestCertificates.shared else { return }
                try? FileManager.default.removeItem(atPath: made.folder)
            }
        }
        folder = NSTemporaryDirectory() + "portcullis-tls-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try makeAuthority("ca")
        try makeAuthority("stranger")
        try FileManager.default.createDirectory(
            atPath: folder + "/issued",
            withIntermediateDirectories: true
        )
        try write("index", "")
        try write("serial", "01\n")
        let authority = """
            [ca]
            default_ca = own
            [own]
            database = index
            new_certs_dir = issued
            serial = serial
            certificate = ca.pem
            private_key = ca.key
            default_md = sha256
            policy = any
            unique_subject = no
            [any]
            commonName = supplied
            [changes]
            2.5.29.27 = critical, DER:02:01:01
            """
        try write("ca.conf", authority)
        let names = "DNS:gateway.test,DNS:*.wild.test,IP:127.0.0.1"
        try makeLeaf("server", names: names)
        try makeLeaf("other", names: "DNS:other.test")
        try makeLeaf("expired", names: names, from: "200101000000Z", until: "210101000000Z")
        try makeLeaf("future", names: names, from: "480101000000Z", until: "490101000000Z")
        let locked = ["-in", "server.key", "-aes128", "-passout", "pass:x", "-out", "locked.key"]
        try run(["pkey"] + locked)
        try makeLists()
    }

    /// Lists of revoked certificates: of none, of `other`, one whose time is over, one of another
    /// authority, one that another key of the same name has signed, one of changes alone (RFC 5280
    /// §5.2.4), and one without an end, which no key has signed.
    private func makeLists() throws {
        try makeList("none")
        let forged = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        try run(
            ["req"] + forged + ["-subj", "/CN=ca", "-keyout", "forged.key", "-out", "forged.pem"]
        )
        try makeList("forged", of: "forged")
        try makeList("stranger", of: "stranger")
        try run(["ca", "-config", "ca.conf", "-revoke", "other.pem"])
        try makeList("revoked")
        try makeList("ended", from: "200101000000Z", until: "210101000000Z")
        try run(["crl", "-in", "revoked.crl", "-outform", "DER", "-out", "revoked.der"])
        try makeList("changes", extensions: "changes")
        try write("endless.conf", Self.endlessList)
        try run(["asn1parse", "-genconf", "endless.conf", "-noout", "-out", "endless.der"])
    }

    /// A list (RFC 5280 §5.1) without nextUpdate, in the form of ASN1_generate_nconf(3).
    private static let endlessList = """
        asn1 = SEQUENCE:list
        [list]
        list = SEQUENCE:signed
        algorithm = SEQUENCE:algorithm
        signature = FORMAT:HEX,BITSTRING:00
        [signed]
        version = INTEGER:1
        algorithm = SEQUENCE:algorithm
        issuer = SEQUENCE:issuer
        start = UTCTIME:240101000000Z
        [algorithm]
        name = OID:ecdsa-with-SHA256
        [issuer]
        names = SET:names
        [names]
        name = SEQUENCE:name
        [name]
        type = OID:commonName
        value = UTF8:ca
        """

    private func makeList(
        _ name: String,
        of authority: String = "ca",
        from start: String = "240101000000Z",
        until end: String = "490101000000Z",
        extensions: String? = nil
    ) throws {
        try run(
            ["ca", "-config", "ca.conf", "-gencrl", "-out", name + ".crl"]
                + ["-cert", authority + ".pem", "-keyfile", authority + ".key"]
                + ["-crl_lastupdate", start, "-crl_nextupdate", end]
                + (extensions.map { ["-crlexts", $0] } ?? [])
        )
    }

    private func write(_ name: String, _ text: String) throws {
        try text.write(toFile: folder + "/" + name, atomically: true, encoding: .utf8)
    }

    private func makeAuthority(_ name: String) throws {
        try request(name, ["-x509", "-out", name + ".pem", "-days", "30"])
    }

    /// Makes a key and a request for its certificate, or with `-x509` the certificate.
    private func request(_ name: String, _ options: [String]) throws {
        try run(
            ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout"]
                + [name + ".key", "-subj", "/CN=\(name)"] + options
        )
    }

    private func makeLeaf(
        _ name: String,
        names: String,
        from start: String = "240101000000Z",
        until end: String = "490101000000Z"
    ) throws {
        try request(name, ["-new", "-out", name + ".csr"])
        try write(name + ".ext", "subjectAltName=\(names)\n")
        try run(
            ["ca", "-batch", "-notext", "-config", "ca.conf", "-in", name + ".csr"]
                + ["-out", name + ".pem", "-startdate", start, "-enddate", end]
                + ["-extfile", name + ".ext"]
        )
    }

    private func run(_ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        let errors = Pipe()
        process.standardError = errors
        try process.run()
        let text = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let words = String(decoding: text, as: UTF8.self)
            throw Failure(description: "openssl \(arguments.joined(separator: " ")): \(words)")
        }
    }
}
