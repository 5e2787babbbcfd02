package import HTTPWire
import Rules

/// A listener in the file's words.
struct ListenDraft {
    private static let keys = ["address", "tls", "http2", "proxy_protocol", "decides", "content"]

    let address: Located<ServerAddress>?
    let tls: TLSDraft?
    let http2: Located<ListenSettings.HTTP2>?
    let proxyProtocol: Located<Bool>?
    let decides: Located<DecisionForm>?
    let content: Located<DecisionQuestion.Content>?

    /// The listeners of the file, in their order.
    static func all(_ reader: MappingReader) -> [ListenDraft] {
        let nodes = reader.list("listen", of: "listeners: - address: 0.0.0.0:8443") ?? []
        return nodes.compactMap { ListenDraft($0, $1, log: reader.log) }
    }

    private init?(_ node: SourceNode, _ keyPath: String, log: ProblemLog) {
        guard let reader = MappingReader(node, keyPath, keys: Self.keys, log: log) else {
            return nil
        }
        reader.require("address", use: "address: 0.0.0.0:8443, [::]:8443 or unix:/path")
        tls = reader.node("tls").flatMap { TLSDraft($0, reader.path("tls"), log: log) }
        address = reader.listenAddress()
        http2 = reader.word("http2")
        proxyProtocol = reader.flag("proxy_protocol")
        decides = reader.word("decides")
        content = reader.word("content")
    }
}

extension MappingReader {
    func listenAddress() -> Located<ServerAddress>? {
        value("address", use: "IP:port, [v6]:port or unix:/absolute/path") { text in
            let address = ServerAddress(text: text, allowsPortZero: true)
            if case .name = address { return nil }
            return address
        }
    }
}

/// A listener's `tls` in the file's words.
struct TLSDraft {
    struct Certificate {
        let keyPath: String
        let certificate: Located<String>?
        let key: Located<String>?
        let names: [Located<String>]
        let namesPlace: Problem.Place

        init(_ reader: MappingReader, takesNames: Bool) {
            keyPath = reader.keyPath
            namesPlace = reader.place(of: "names")
            reader.require("certificate", use: "certificate: a PEM file")
            reader.require("key", use: "key: a PEM file")
            certificate = reader.filePath("certificate", use: "a PEM file's path")
            key = reader.filePath("key", use: "a PEM file's path")
            let use = "host names, as api.example.com or *.example.com"
            names = takesNames ? reader.list("names", of: use, TLSDraft.name) ?? [] : []
        }
    }

    let certificates: [Certificate]
    let minimum: Located<ListenSettings.TLS.Version>?
    private let authorities: Located<String>?
    private let demand: Located<ListenSettings.TLS.Client.Demand>?
    private let clientPath: String

    init?(_ node: SourceNode, _ keyPath: String, log: ProblemLog) {
        let keys = ["certificate", "key", "certificates", "minimum", "client"]
        guard let reader = MappingReader(node, keyPath, keys: keys, log: log) else { return nil }
        minimum = reader.word("minimum")
        clientPath = reader.path("client")
        let client = reader.inner("client", keys: ["ca", "require"])
        client?.require("ca", use: "ca: a PEM file with the authorities of clients' certificates")
        client?.require("require", use: "require: optional | required")
        authorities = client?.filePath("ca", use: "a PEM file's path")
        demand = client?.word("require")
        guard reader.has("certificates") else {
            certificates = [Certificate(reader, takesNames: false)]
            return
        }
        for key in ["certificate", "key"] where reader.has(key) {
            let found = "it beside certificates"
            let use = "it in the list of certificates"
            reader.error(key, found: found, use: use)
        }
        let nodes = reader.list("certificates", of: "- { certificate: …, key: … }") ?? []
        certificates = nodes.compactMap { node, keyPath in
            MappingReader(node, keyPath, keys: ["certificate", "key", "names"], log: log)
                .map { Certificate($0, takesNames: true) }
        }
    }

    private static func name(_ text: String) -> String? {
        switch HostPattern(text: text) {
        case .exact?, .under?: text.lowercased()
        case .any?, .address?, nil: nil
        }
    }

    /// The places of the files, by key path.
    var places: [(String, Problem.Place)] {
        (certificates.flatMap { [$0.certificate, $0.key] } + [authorities]).compactMap(
            \.self
        )
        .map { ($0.keyPath, $0.place) }
            + certificates.map { ("\($0.keyPath).names", $0.namesPlace) }
    }

    /// The settings; checks the files without reading them.
    func validated(_ files: NamedFiles) -> ListenSettings.TLS? {
        let log = files.log
        var holders: [String: Problem.Place] = [:]
        let valid = certificates.compactMap { draft -> ListenSettings.TLS.Certificate? in
            for name in draft.names {
                if let place = holders[name.value] {
                    log.error(
                        name,
                        found: "\(name.value), for which the certificate at \(place.text) is shown",
                        use: "each name once"
                    )
                }
                holders[name.value] = holders[name.value] ?? name.place
            }
            guard let certificate = draft.certificate, let key = draft.key else { return nil }
            let keyFile = files.path(of: key)
            _ = files.require(certificate)
            files.require(key: key)
            return ListenSettings.TLS.Certificate(
                certificateFile: files.path(of: certificate),
                keyFile: keyFile,
                names: draft.names.map(\.value),
                keyPath: draft.keyPath
            )
        }
        if let authorities { _ = files.require(authorities) }
        guard !valid.isEmpty else { return nil }
        var client: ListenSettings.TLS.Client?
        if let authorities, let demand {
            client = ListenSettings.TLS.Client(
                authoritiesFile: files.path(of: authorities),
                demand: demand.value,
                keyPath: clientPath
            )
        }
        return ListenSettings.TLS(
            certificates: valid,
            minimumVersion: minimum?.value ?? .tls12,
            client: client
        )
    }
}

extension NamedFiles {
    /// A file with a private key. A certificate that was given in its place may be read by all, and
    /// the problem is another one, which loading it finds.
    func require(key: Located<String>) {
        guard let mode = require(key) else { return }
        let path = path(of: key)
        guard !PEMContent(path, disk).isCertificateAlone else { return }
        log.check(key: key, at: path, mode)
    }

    /// The mode of a file; `nil`, with a problem, when it can't be read.
    func require(_ file: Located<String>) -> FileMode? {
        let path = path(of: file)
        do throws(FileFault) {
            return FileMode(try disk.permissions(of: path))
        } catch {
            log.error(
                file,
                found: "\(error.found) (\(path))",
                use: "a readable PEM file; relative paths count from the configuration's folder"
            )
            return nil
        }
    }
}

/// One address on which clients are accepted.
package struct ListenSettings: Hashable, Sendable {
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
    package let address: ServerAddress
    /// `nil` for plain HTTP.
    package var tls: TLS?
    /// `http2`: default on under TLS, where clients choose, and off without TLS, but for
    /// `decides: ext_authz_grpc`, which needs it.
    package var http2 = HTTP2.off
    /// `proxy_protocol: true` means a PROXY header. Default none.
    package var preface = Preface.none
    /// `decides` and `content`: its clients are other proxies, which ask for decisions. Default:
    /// its clients' requests go to origins.
    package var decides: DecisionQuestion?
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
    package struct TLS: Hashable, Sendable {
        /// The oldest accepted version of the protocol.
        package enum Version: String, CaseIterable, Sendable {
            case tls12 = "1.2"
            case tls13 = "1.3"
        }

        /// A certificate and its key. Changed files are read again.
        package struct Certificate: Hashable, Sendable {
            /// PEM: the certificate, then those that lead to its root.
            package let certificateFile: String
            /// PEM: the private key, without a passphrase.
            package let keyFile: String
            /// Names for which it is shown, in lower case; empty for those in the certificate.
            package let names: [String]
            /// Its key path, such as `listen[0].tls.certificates[1]`.
            package let keyPath: String
        }

        /// The certificates that clients are asked for.
        package struct Client: Hashable, Sendable {
            /// Whether a client without a certificate is served.
            package enum Demand: String, CaseIterable, Sendable { case optional, required }

            /// PEM: the authorities that sign clients' certificates.
            package let authoritiesFile: String
            /// Mandatory.
            package let demand: Demand
            /// Its key path, such as `listen[0].tls.client`.
            package let keyPath: String
        }

        /// At least one. The first is for clients that ask for no name, or for one that no
        /// certificate has.
        package let certificates: [Certificate]
        /// Default 1.2.
        package let minimumVersion: Version
        /// `nil` where clients are not asked.
        package let client: Client?

        package var files: [String] {
            certificates.flatMap { [$0.certificateFile, $0.keyFile] }
                + [client?.authoritiesFile].compactMap(\.self)
        }
    }

    /// This listener without TLS.
    package var withoutTLS: ListenSettings {
        var copy = self
        copy.tls = nil
        return copy
    }
}
