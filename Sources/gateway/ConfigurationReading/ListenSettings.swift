package import HTTPWire
import Rules

/// One address on which clients are accepted.
package struct ListenSettings: Hashable, Sendable, Declared {
    /// The beginning of connections.
    package enum Preface: Hashable, Sendable {
        /// The client's first byte.
        case none
        /// A header of the PROXY protocol, version 1 or 2, by a peer of `trusted_proxies`.
        case proxyHeader
    }

    /// Whether clients may speak HTTP/2: under TLS by ALPN, without TLS by prior knowledge (RFC
    /// 9113 §3.2, §3.3).
    package enum HTTP2: String, CaseIterable, Hashable, Sendable {
        case off, on
    }

    /// An IP address and port (0: the system chooses), or a Unix socket.
    package var address = ServerAddress.unix("")
    /// `nil` for plain HTTP.
    package var tls: TLS?
    private var statedHTTP2: HTTP2?
    package var preface = Preface.none
    private var form: DecisionForm?
    private var content = DecisionQuestion.Content.none
    /// `listen[0]`.
    package let keyPath: String

    init(keyPath: String) { self.keyPath = keyPath }

    /// Under TLS clients choose.
    package var http2: HTTP2 {
        statedHTTP2 ?? (tls == nil && form != .extAuthzGRPC ? .off : .on)
    }

    /// Its clients are other proxies, which ask for decisions; `nil` where its clients' requests go
    /// to origins.
    package var decides: DecisionQuestion? { form.map { DecisionQuestion($0, content: content) } }

    /// This listener without TLS.
    package var withoutTLS: ListenSettings {
        var copy = self
        // Whether TLS is there says whether HTTP/2 is on.
        (copy.statedHTTP2, copy.tls) = (http2, nil)
        return copy
    }

    package static let keys = Keys<Self> {
        Key("address", \.address, .listening)
            .means("Where clients connect. With port 0 the system chooses one.")
            .mandatory("address: 0.0.0.0:8443, [::]:8443 or unix:/path")
        Key("tls", orNone: \.tls, .mapping { _ in TLS() })
            .means("The certificates of the listener. Without it, plain HTTP.")
        Key("http2", orNone: \.statedHTTP2, .word).means("Whether clients may speak HTTP/2.")
            .because("on with tls or decides: ext_authz_grpc, else off")
        Key("proxy_protocol", \.preface, preface)
            .means("Whether every connection begins with a header of the PROXY protocol.")
        Key("decides", orNone: \.form, .word)
            .means("Other proxies ask here, in this form, whether they may forward a request.")
        Key("content", \.content, .word)
            .means("Whether the asking proxy sends all content with its question.")
    }

    private static let preface = ValueForm<Preface>(
        { $0.flag($1)?.map { $0 ? .proxyHeader : .none } },
        text: { $0 == .none ? "false" : "true" }
    )

    /// The networks from which clients can connect, if there is no proxy.
    fileprivate var reach: [IPNetwork] {
        let texts: [String] =
            switch address {
            case .ip(.v4, _): [address.isLocal ? "127.0.0.0/8" : "0.0.0.0/0"]
            case .ip(.v6(high: 0, low: 0), _): ["0.0.0.0/0", "::/0"]
            case .ip(.v6, _): [address.isLocal ? "::1" : "::/0"]
            // Reported, and without an address.
            case .name, .unix: []
            }
        return texts.compactMap { IPNetwork($0) }
    }

    /// Reports what does not belong together.
    func validate(trustsProxies: Bool, _ log: ProblemLog) {
        validateDecision(trustsProxies: trustsProxies, log)
        guard preface == .proxyHeader, !trustsProxies else { return }
        log.error(
            log.located("\(keyPath).proxy_protocol", true),
            found: "it without trusted_proxies, so that nobody may connect",
            use: "trusted_proxies with the addresses of the proxies that send the header"
        )
    }

    private func validateDecision(trustsProxies: Bool, _ log: ProblemLog) {
        func error(_ key: String, _ found: String, use: String) {
            log.error(log.located("\(keyPath).\(key)", key), found: found, use: use)
        }
        guard let form else {
            if log.places["\(keyPath).decides"] == nil, log.places["\(keyPath).content"] != nil {
                error(
                    "content",
                    "it without decides",
                    use: "decides beside it, or neither: a request's own content always comes"
                )
            }
            return
        }
        if !trustsProxies {
            error(
                "decides",
                "it without trusted_proxies, so that nobody may ask",
                use: "trusted_proxies with the addresses of the proxies that ask"
            )
        }
        if preface == .proxyHeader {
            error(
                "proxy_protocol",
                "it beside decides, where the peer itself has to be a trusted proxy",
                use: "one of the two"
            )
        }
        if form == .extAuthzGRPC, statedHTTP2 == .off {
            error(
                "http2",
                "off beside decides: ext_authz_grpc, which needs HTTP/2",
                use: "on, which is the default there, or leave it out"
            )
        }
    }
}

extension ValueForm where Value == ServerAddress {
    /// An address to listen on.
    static var listening: ValueForm {
        ValueForm(
            { reader, key in
                reader.takingVariables.value(
                    key,
                    use: "IP:port, [v6]:port or unix:/absolute/path"
                ) { text in
                    let address = ServerAddress(text: text, allowsPortZero: true)
                    if case .name = address { return nil }
                    return address
                }
            },
            text: { $0.text }
        )
    }
}

/// The number of event loops that serve connections.
package enum EventLoopCount: Hashable, Sendable {
    /// One for each core that the process may use. The default.
    case perCore
    /// 1…256.
    case fixed(Int)
}

extension ListenSettings {
    /// A listener's certificates, and those that it asks its clients for.
    package struct TLS: Hashable, Sendable, Declared {
        /// At least one. The first is for clients that ask for no name, or for one that no
        /// certificate has.
        package private(set) var certificates: [Certificate] = []
        package private(set) var terms = TLSTermSettings()
        /// `nil` where clients are not asked.
        package private(set) var client: Client?

        package var files: [String] {
            certificates.flatMap { [$0.certificateFile, $0.keyFile] }
                + [client?.authoritiesFile, client?.revocationPath].compactMap(\.self)
        }

        private static let form = "- { certificate: …, key: … }"

        package static let keys = Keys<Self> {
            Certificate.files.all.map { Key(like: $0) }
            Key("certificates", \.certificates, .list(of: form) { Certificate(keyPath: $0) })
                .means("In the place of these: several, of which a client gets that of its name.")
            TLSTermSettings.keys.all.map { Key($0, of: \.terms) }
            Key("client", orNone: \.client, .mapping { Client(keyPath: $0) })
                .means("Clients are asked for certificates.")
        }.checked { reader, tls in
            tls.terms.check(reader)
            let own = Certificate.files.names
            guard !reader.has("certificates") else {
                for key in own where reader.has(key) {
                    let found = "it beside certificates"
                    reader.error(key, found: found, use: "it in the list of certificates")
                }
                for key in own { _ = reader.filePath(key, use: "a file's path") }
                return
            }
            var certificate = Certificate(keyPath: reader.keyPath)
            let given = Certificate.files.read(reader, into: &certificate)
            guard given.isSuperset(of: Certificate.files.mandatory) else { return }
            tls.certificates = [certificate]
        }

        /// Checks the files without reading them.
        func validate(_ files: NamedFiles) {
            let log = files.log
            var holders: [String: Problem.Place] = [:]
            for certificate in certificates {
                for (index, name) in certificate.names.enumerated() {
                    let name = log.located("\(certificate.keyPath).names[\(index)]", name)
                    if let place = holders[name.value] {
                        log.error(
                            name,
                            found: "\(name.value), for which the certificate at \(place.text) is "
                                + "shown",
                            use: "each name once"
                        )
                    }
                    holders[name.value] = holders[name.value] ?? name.place
                }
                func located(_ key: String, _ file: String) -> Located<String> {
                    log.located("\(certificate.keyPath).\(key)", file)
                }
                _ = files.require(located("certificate", certificate.certificateFile))
                files.require(key: located("key", certificate.keyFile))
            }
            if let client {
                let file = log.located("\(client.keyPath).ca", client.authoritiesFile)
                _ = files.require(file)
                client.revocationPath.map {
                    files.require(fileOrFolder: log.located("\(client.keyPath).crl", $0))
                }
            }
        }
    }
}

extension ListenSettings.TLS {
    /// A certificate and its key. Changed files are read again.
    package struct Certificate: Hashable, Sendable, Declared {
        package private(set) var certificateFile = ""
        package private(set) var keyFile = ""
        /// Names for which it is shown, in lower case; empty for those in the certificate.
        package private(set) var names: [String] = []
        /// Its key path, such as `listen[0].tls.certificates[1]`.
        package let keyPath: String

        fileprivate init(keyPath: String) { self.keyPath = keyPath }

        fileprivate static let files = Keys<Self> {
            Key("certificate", \.certificateFile, .path("a PEM file's path"))
                .means("The certificate, then those that lead to its root.")
                .mandatory("certificate: a PEM file")
            Key("key", \.keyFile, .path("a PEM file's path"))
                .means("The private key, without a passphrase.").mandatory("key: a PEM file")
        }

        package static let keys = Keys<Self> {
            files.all
            Key("names", \.names, nameForm)
                .means("The names for which it is shown. Without it, those in the certificate.")
        }

        private static let nameForm = ValueForm<[String]>.texts(
            "host names, as api.example.com or *.example.com",
            name
        ).takingVariables

        private static func name(_ text: String) -> String? {
            switch HostPattern(text: text) {
            case .exact?, .under?: text.lowercased()
            case .any?, .address?, nil: nil
            }
        }
    }

    /// The certificates that clients are asked for.
    package struct Client: Hashable, Sendable, Declared {
        /// Whether a client without a certificate is served.
        package enum Demand: String, CaseIterable, Sendable { case optional, required }

        package private(set) var authoritiesFile = ""
        /// A file or a folder with lists of revoked certificates; `nil` where none is checked.
        package private(set) var revocationPath: String?
        package private(set) var demand = Demand.required
        /// Its key path, such as `listen[0].tls.client`.
        package let keyPath: String

        fileprivate init(keyPath: String) { self.keyPath = keyPath }

        package static let keys = Keys<Self> {
            Key("ca", \.authoritiesFile, .path("a PEM file's path"))
                .means("The authorities that sign clients' certificates.")
                .mandatory("ca: a PEM file with the authorities of clients' certificates")
            Key("crl", orNone: \.revocationPath, .path("the path of a file or a folder"))
                .means(
                    "Lists of revoked certificates: one for each authority up to the root.",
                    otherwise: "none is checked"
                )
            Key("require", \.demand, .word)
                .means("Whether a client without a certificate is served, too.")
                .mandatory("require: optional | required")
        }
    }
}

extension NamedFiles {
    /// A file with a private key. A certificate that was given in its place may be read by all, and
    /// the problem is another one, which loading it finds.
    package func require(key: Located<String>) {
        guard let mode = require(key), !PEMContent(key.value, disk).isCertificateAlone else {
            return
        }
        log.check(key: key, at: key.value, mode)
    }

    /// A file, or a folder, whose files are read later.
    func require(fileOrFolder path: Located<String>) {
        if (try? disk.names(in: path.value)) == nil { _ = require(path) }
    }

    /// The mode of a file; `nil`, with a problem, when it can't be read.
    ///
    /// - file: relative to the process's own folder, not to the configuration's.
    func require(_ file: Located<String>) -> FileMode? {
        do throws(FileFault) {
            return FileMode(try disk.permissions(of: file.value))
        } catch {
            guard !log.assumes(file, at: file.value, error) else { return nil }
            log.error(
                file,
                found: "\(error.found) (\(file.value))",
                use: "a readable PEM file; relative paths count from the configuration's folder"
            )
            return nil
        }
    }
}

extension GatewaySettings {
    /// The clients that can reach a listener; `nil` where a trusted proxy may name any. A listener
    /// for all addresses of IPv6 takes IPv4 too, as ``ServerAddress/includes(_:)`` says.
    var reachedClients: ClientPattern? {
        guard trustedProxies.isEmpty else { return nil }
        let networks = listeners.flatMap(\.reach)
        // Peers of Unix sockets have no address.
        guard !networks.isEmpty else { return nil }
        return ClientPattern(networks)
    }
}
