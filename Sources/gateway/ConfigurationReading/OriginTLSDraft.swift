import HTTPWire
import Rules

/// An origin's `tls` in the file's words.
struct OriginTLSDraft {
    private let reader: MappingReader?
    private let authorities: Located<String>?
    private let certificate: Located<String>?
    private let key: Located<String>?
    private let serverName: Located<String>?
    private let insecure: Located<Bool>?
    private let minimum: Located<ListenSettings.TLS.Version>?
    private let place: Problem.Place
    private let keyPath: String

    /// The word for TLS with all defaults.
    private static let word = "verify"

    init?(_ node: SourceNode, _ keyPath: String, log: ProblemLog) {
        place = node.place
        self.keyPath = keyPath
        log.record?.text(keyPath, use: Self.word, words: [Self.word])
        if case .text(Self.word) = node.content {
            reader = nil
            (authorities, certificate, key, serverName, insecure, minimum) =
                (nil, nil, nil, nil, nil, nil)
            return
        }
        guard case .mapping = node.content else {
            let use =
                "verify, or a mapping with ca, certificate, key, server_name, minimum, insecure"
            log.error(node.place, keyPath, found: node.found, use: use)
            return nil
        }
        let keys = ["ca", "certificate", "key", "server_name", "minimum", "insecure"]
        guard let reader = MappingReader(node, keyPath, keys: keys, log: log) else { return nil }
        self.reader = reader
        authorities = reader.filePath("ca", use: "a PEM file's path")
        certificate = reader.filePath("certificate", use: "a PEM file's path")
        key = reader.filePath("key", use: "a PEM file's path")
        serverName = reader.value("server_name", use: "a host name or an IP address") { text in
            switch HostPattern(text: text) {
            case .exact?: text.lowercased()
            case .address(let address)?: address.text
            case .any?, .under?, nil: nil
            }
        }
        insecure = reader.flag("insecure")
        minimum = reader.word("minimum")
    }

    /// The places of the section and its files, by key path.
    var places: [(String, Problem.Place)] {
        [(keyPath, place)]
            + [authorities, certificate, key].compactMap(\.self).map { ($0.keyPath, $0.place) }
            + [insecure].compactMap(\.self).map { ($0.keyPath, $0.place) }
    }

    /// The settings; checks the files without reading them.
    func validated(servers: [Located<ServerSettings>], _ files: NamedFiles) -> OriginTLSSettings {
        let log = files.log
        for file in [authorities, certificate].compactMap(\.self) { _ = files.require(file) }
        if let key, let mode = files.require(key) {
            log.check(key: key, at: files.path(of: key), mode)
        }
        for (one, other, name) in [(certificate, key, "key"), (key, certificate, "certificate")] {
            guard let one, other == nil else { continue }
            log.error(one, found: "it alone", use: "\(name) beside it")
        }
        let isInsecure = insecure?.value ?? false
        if isInsecure, let authorities {
            let use = "ca, which is verified, or insecure: true, which verifies nothing"
            log.error(authorities, found: "it and insecure", use: use)
        }
        if !isInsecure, serverName == nil,
            let socket = servers.first(where: { $0.value.address.isUnix })
        {
            log.error(
                place,
                keyPath,
                found:
                    "no server_name for \(socket.value.address.text), which has no name of its own",
                use: "server_name: the name in the server's certificate"
            )
        }
        return OriginTLSSettings(
            trust: isInsecure ? .anyone : authorities.map { .file(files.path(of: $0)) } ?? .system,
            certificateFile: certificate.map { files.path(of: $0) },
            keyFile: key.map { files.path(of: $0) },
            serverName: serverName?.value,
            minimumVersion: minimum?.value ?? .tls12
        )
    }
}

/// `origins.*.tls`: TLS to an origin.
package struct OriginTLSSettings: Hashable, Sendable {
    /// The certificates that are accepted.
    package enum Trust: Hashable, Sendable {
        /// Certificates of the machine's authorities, with the server's name. The default.
        case system
        /// `ca`: certificates that lead to one of this PEM file, with the server's name.
        case file(String)
        /// `insecure: true`: any certificate.
        case anyone
    }

    package let trust: Trust
    /// `certificate` and `key`: the certificate for servers that ask for one; PEM files.
    package let certificateFile: String?
    package let keyFile: String?
    /// `server_name`: the name that certificates must have, and that is sent as SNI; `nil` for the
    /// server's host in `servers`.
    package let serverName: String?
    /// `minimum`: default 1.2.
    package let minimumVersion: ListenSettings.TLS.Version

    package var files: [String] {
        let authorities: [String] = if case .file(let path) = trust { [path] } else { [] }
        return authorities + [certificateFile, keyFile].compactMap(\.self)
    }

    /// The name that a server's certificate must have. A Unix socket has none of its own.
    package func name(of server: ServerAddress) -> String {
        if let serverName { return serverName }
        return switch server {
        case .ip(let address, _): address.text
        case .name(let name, _): name
        case .unix: "localhost"
        }
    }
}
