import ConfigurationReading
import EventLoops
import Signatures

/// The loaded certificates, keys and authorities of a configuration.
///
/// It reads files, so it is made where waiting is allowed: by a start, a reload, `check`, and again
/// when one of the files has changed.
struct LoadedCertificates: Sendable {
    /// The context of each listener, in their order; `nil` for a plain one, or after an error.
    private(set) var listeners: [TLSContext?] = []
    /// The context for each origin, in their order; `nil` without TLS, or after an error.
    private(set) var origins: [TLSContext?] = []
    /// Faults, and settings that are probably not intended. With an error, nothing of it may be
    /// used.
    private(set) var problems: [Problem] = []

    /// Whether there is an error, so that nothing of it can be used.
    var hasErrors: Bool { problems.contains { $0.severity == .error } }

    /// A certificate that expires within these seconds causes a warning: renewal has failed for a
    /// while (ACME clients renew 30 days before the end).
    private static let expiryWarningSeconds: Int64 = 7 * 86_400

    private let configuration: GatewayConfiguration
    private let surroundings: TLSSurroundings
    private let now: Int64

    init(_ configuration: GatewayConfiguration, _ surroundings: TLSSurroundings) {
        self.configuration = configuration
        self.surroundings = surroundings
        now = surroundings.wallSeconds()
        for listener in configuration.listeners {
            let keyPath = "\(listener.keyPath).tls"
            listeners.append(listener.tls.flatMap { load($0, listener.http2, at: keyPath) })
        }
        for origin in configuration.origins {
            origins.append(
                origin.tls.flatMap { load($0, origin.http2, keyPath: "origins.\(origin.name).tls") }
            )
        }
    }

    /// The files that are loaded. When one of them changes, all are loaded again.
    static func files(of configuration: GatewayConfiguration) -> [String] {
        configuration.listeners.compactMap(\.tls).flatMap(\.files)
            + configuration.origins.compactMap(\.tls).flatMap(\.files)
    }

    /// The stamps of these files, to detect later changes.
    static func stamps(of configuration: GatewayConfiguration) -> CertificateWatch.Stamps {
        CertificateWatch.stamps(files(of: configuration))
    }

    /// Checks who else may read the keys, which a start and a reload have done before they load
    /// them.
    mutating func checkKeys() {
        let log = ProblemLog()
        let files = NamedFiles(folder: "", disk: DiskFiles(), log: log)
        let listeners = configuration.listeners.flatMap { $0.tls?.certificates ?? [] }.map {
            ("\($0.keyPath).key", $0.keyFile)
        }
        let origins = configuration.origins.compactMap { origin in
            origin.tls?.keyFile.map { ("origins.\(origin.name).tls.key", $0) }
        }
        for (keyPath, file) in listeners + origins {
            let place = configuration.place(of: keyPath)
            files.require(key: Located(value: file, place: place, keyPath: keyPath))
        }
        problems += log.problems
    }

    // MARK: Listeners

    private mutating func load(
        _ tls: ListenSettings.TLS,
        _ http2: ListenSettings.HTTP2,
        at keyPath: String
    ) -> TLSContext? {
        let present = tls.certificates.filter {
            surroundings.has($0.certificateFile) && surroundings.has($0.keyFile)
        }
        for settings in tls.certificates where !surroundings.has(settings.keyFile) {
            examine(withoutKey: settings)
        }
        guard !present.isEmpty else { return nil }
        let client = tls.client.flatMap { surroundings.has($0.authoritiesFile) ? $0 : nil }
        do throws(TLSContextError) {
            let context = try TLSContext(
                showing: present.map(ServerCertificate.init),
                terms: TLSTerms(
                    tls.terms,
                    protocols: http2 == .on ? TLSContext.http2First : [TLSContext.http11]
                ),
                tickets: surroundings.tickets,
                clients: client.map { ClientTrust($0, in: surroundings) },
                wallSeconds: surroundings.wallSeconds
            )
            for (settings, loaded) in zip(present, context.certificates) {
                examine(settings, loaded)
                guard !tls.terms.serves(rsa: loaded.signsByRSA) else { continue }
                let kind = loaded.signsByRSA ? "an RSA" : "an ECDSA"
                add(
                    .error,
                    "\(keyPath).ciphers",
                    found: "no suite of TLS 1.2 that can use \(kind) key (\(loaded.file))",
                    use: "such a suite too, minimum: 1.3, or a certificate with another key"
                )
            }
            examineNames(present, context.certificates)
            for list in context.revocationLists {
                guard let client, let found = list.ending(now) else { continue }
                let use = "a new one from the authority, which is read when the file has changed"
                add(.warning, "\(client.keyPath).crl", found: found, use: use)
            }
            return context
        } catch {
            refuse(tls, error, at: keyPath)
            return nil
        }
    }

    /// Reports the problem of each certificate: the first problem hides the others.
    private mutating func refuse(
        _ tls: ListenSettings.TLS,
        _ first: TLSContextError,
        at keyPath: String
    ) {
        let count = problems.count
        if let client = tls.client, first.path == client.authoritiesFile {
            add("\(client.keyPath).ca", first)
        }
        if let client = tls.client, first.isAboutLists { add("\(client.keyPath).crl", first) }
        if let key = first.algorithmKey { add("\(keyPath).\(key)", first) }
        for settings in tls.certificates where surroundings.has(settings.keyFile) {
            do throws(TLSContextError) {
                _ = try TLSContext(showing: [ServerCertificate(settings)])
            } catch {
                refuse(settings, error)
            }
        }
        // The problem was the listener's, or the files have changed meanwhile.
        if problems.count == count { refuse(tls.certificates[0], first) }
    }

    private mutating func refuse(
        _ settings: ListenSettings.TLS.Certificate,
        _ error: TLSContextError
    ) {
        let isKey = [.keyUnreadable, .keyEncrypted, .keyMismatch].contains(error.reason)
        let files = PairedFiles(certificate: settings.certificateFile, key: settings.keyFile)
        add("\(settings.keyPath).\(isKey ? "key" : "certificate")", error, of: files)
    }

    /// A certificate whose key is assumed: whether it is one, and when it ends.
    private mutating func examine(withoutKey settings: ListenSettings.TLS.Certificate) {
        let (file, keyPath) = (settings.certificateFile, "\(settings.keyPath).certificate")
        guard surroundings.has(file) else { return }
        do {
            let bytes = try DiskFiles().contents(of: file, limit: X509Certificate.pemBytesMax)
            let text = String(decoding: bytes, as: UTF8.self)
            let first = try X509Certificate.certificates(pem: text).first
            guard let first, let found = Self.ending(at: first.notAfter.seconds, now) else {
                return
            }
            let use = "a renewed one in its place, which is loaded without a reload"
            add(.warning, keyPath, found: "\(found) (\(file))", use: use)
        } catch {
            let use = "a PEM file with the certificate, then those that lead to its root"
            add(.error, keyPath, found: "no certificate in \(file)", use: use)
        }
    }

    private mutating func examine(
        _ settings: ListenSettings.TLS.Certificate,
        _ loaded: TLSCertificate
    ) {
        let keyPath = "\(settings.keyPath).certificate"
        if let found = Self.ending(loaded, now) {
            add(
                .warning,
                keyPath,
                found: "\(found) (\(loaded.file))",
                use: "a renewed one in its place, which is loaded without a reload"
            )
        }
        if loaded.demandsStaple {
            add(
                .warning,
                keyPath,
                found: """
                    a certificate that demands an OCSP response (\(loaded.file)), which is never \
                    sent, so that some clients refuse it
                    """,
                use: "one without Must-Staple (RFC 7633)"
            )
        }
        for name in settings.names where !loaded.covers(name) {
            add(
                .warning,
                "\(settings.keyPath).names",
                found: "\(name), which is not in the certificate, so that clients refuse it",
                use: "a name of the certificate (\(loaded.file)), or another certificate"
            )
        }
    }

    /// The warning about a certificate that has expired, or soon will; `nil` for any other.
    static func ending(_ certificate: TLSCertificate, _ now: Int64) -> String? {
        ending(at: certificate.expiry, now)
    }

    private static func ending(at end: Int64, _ now: Int64) -> String? {
        guard end < now + expiryWarningSeconds else { return nil }
        return end < now
            ? "a certificate that ended \(text(now - end)) ago, which clients refuse"
            : "a certificate that ends in \(text(end - now))"
    }

    static func text(_ seconds: Int64) -> String {
        seconds >= 86_400 ? "\(seconds / 86_400)d" : "\(seconds / 3600)h"
    }

    /// Reports certificates that are never shown, and names that two of them have.
    private mutating func examineNames(
        _ stated: [ListenSettings.TLS.Certificate],
        _ loaded: [TLSCertificate]
    ) {
        var names = ServerNames()
        for (index, (settings, certificate)) in zip(stated, loaded).enumerated() {
            if index > 0, certificate.names.isEmpty {
                add(
                    .error,
                    "\(settings.keyPath).certificate",
                    found:
                        "a certificate without a name (\(certificate.file)), which no client gets",
                    use: "names beside it, or one with DNS names"
                )
            }
            for name in certificate.names {
                guard let holder = names.add(name, index) else { continue }
                add(
                    .warning,
                    "\(settings.keyPath).certificate",
                    found: "\(name), for which \(loaded[holder].file) is shown, not "
                        + certificate.file,
                    use: "names beside one of them, or certificates for different names"
                )
            }
        }
    }

    // MARK: Origins

    private mutating func load(
        _ tls: OriginTLSSettings,
        _ http2: ListenSettings.HTTP2,
        keyPath: String
    ) -> TLSContext? {
        if case .anyone = tls.trust {
            add(
                .warning,
                "\(keyPath).insecure",
                found: "insecure: true, so that whoever is on the way can read and answer requests",
                use: "ca: with the certificate of the origin's authority, or of the origin itself"
            )
        }
        do throws(TLSContextError) {
            return try TLSContext(tls, http2, in: surroundings)
        } catch {
            let files = [(tls.certificateFile, "certificate"), (tls.keyFile, "key")]
            let key = error.algorithmKey ?? files.first { $0.0 == error.path }?.1 ?? "ca"
            var pair: PairedFiles?
            if let certificate = tls.certificateFile, let key = tls.keyFile {
                pair = PairedFiles(certificate: certificate, key: key)
            }
            add("\(keyPath).\(key)", error, of: pair)
            return nil
        }
    }

    // MARK: Problems

    private mutating func add(
        _ severity: Problem.Severity,
        _ keyPath: String,
        found: String,
        use: String
    ) {
        let place = configuration.place(of: keyPath)
        problems.append(Problem(severity, at: place, keyPath, found: found, use: use))
    }

    /// - pair: the certificate and the key that were loaded together; `nil` for other files.
    private mutating func add(
        _ keyPath: String,
        _ error: TLSContextError,
        of pair: PairedFiles? = nil
    ) {
        let mistake = PairedFiles.mistake(error, of: pair)
        add(
            .error,
            keyPath,
            found: "\(error.reason.rawValue): \(mistake.found)",
            use: mistake.use
        )
    }
}

extension ClientTrust {
    fileprivate init(_ settings: ListenSettings.TLS.Client, in surroundings: TLSSurroundings) {
        self.init(
            authorities: settings.authoritiesFile,
            revoked: settings.revocationPath.flatMap { surroundings.has($0) ? $0 : nil },
            demand: settings.demand == .required ? .required : .optional
        )
    }
}

extension TLSTerms {
    fileprivate init(_ settings: TLSTermSettings, protocols: [String]) {
        self.init(
            minimumVersion: settings.minimumVersion == .tls13 ? .tls13 : .tls12,
            ciphers: settings.ciphers(of: .tls12),
            suites: settings.ciphers(of: .tls13),
            groups: settings.curves,
            protocols: protocols
        )
    }
}

extension TLSContextError {
    fileprivate var isAboutLists: Bool { reason == .listUnreadable || reason == .listMissing }

    /// The key that names an algorithm which OpenSSL lacks.
    fileprivate var algorithmKey: String? {
        switch reason {
        case .cipherUnsupported: "ciphers"
        case .groupUnsupported: "curves"
        case .certificateUnreadable, .certificateWeak, .keyUnreadable, .keyEncrypted, .keyMismatch,
            .trustUnreadable, .listUnreadable, .listMissing, .library:
            nil
        }
    }
}

extension RevocationList {
    /// The warning about a list whose time is over or not there yet, or whose next one is late:
    /// less than a quarter of its time is left, and less than seven days. `nil` for any other.
    func ending(_ now: Int64) -> String? {
        let name = "a list of revoked certificates of \(issuer) (\(file))"
        let refused = "so that every client of it is refused"
        if end <= now {
            return "\(name) that ended \(LoadedCertificates.text(now - end)) ago, \(refused)"
        }
        if start > now { return "\(name) that is not valid yet, \(refused)" }
        guard end - now < min(7 * 86_400, (end - start) / 4) else { return nil }
        return "\(name) that ends in \(LoadedCertificates.text(end - now))"
    }
}

extension ServerCertificate {
    fileprivate init(_ settings: ListenSettings.TLS.Certificate) {
        self.init(
            chain: settings.certificateFile,
            key: settings.keyFile,
            names: settings.names
        )
    }
}

extension TLSContext {
    fileprivate convenience init(
        _ tls: OriginTLSSettings,
        _ http2: ListenSettings.HTTP2,
        in surroundings: TLSSurroundings
    ) throws(TLSContextError) {
        var shown: ServerCertificate?
        if let chain = tls.certificateFile, let key = tls.keyFile, surroundings.has(chain),
            surroundings.has(key)
        {
            shown = ServerCertificate(chain: chain, key: key)
        }
        let trust: Trust =
            switch tls.trust {
            case .system: .system
            case .file(let path): surroundings.has(path) ? .file(path) : .system
            case .anyone: .anyone
            }
        try self.init(
            clientTrusting: trust,
            showing: shown,
            terms: TLSTerms(tls.terms, protocols: [http2 == .on ? Self.http2 : Self.http11])
        )
    }
}

/// The surroundings in which certificates are loaded, and what outlives them.
struct TLSSurroundings: Sendable {
    /// The keys of clients' tickets.
    var tickets = TicketKeys()
    /// Seconds of Unix time.
    var wallSeconds: @Sendable () -> Int64 = TLSContext.systemSeconds
    /// Files that are absent and assumed, so that nothing of them is loaded: only `check --offline`
    /// has some.
    var assumed: Set<String> = []

    func has(_ file: String) -> Bool { !assumed.contains(file) }
}
