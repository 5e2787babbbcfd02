import HTTPWire
import Rules

/// `origins.*.tls`: TLS to an origin.
package struct OriginTLSSettings: Hashable, Sendable, Declared {
    /// The certificates that are accepted.
    package enum Trust: Hashable, Sendable {
        /// Certificates of the machine's authorities, with the server's name. The default.
        case system
        /// `ca`: certificates that lead to one of this PEM file, with the server's name.
        case file(String)
        /// `insecure: true`: any certificate.
        case anyone
    }

    package var trust: Trust { isInsecure ? .anyone : authorities.map { .file($0) } ?? .system }
    private var authorities: String?
    private var isInsecure = false
    /// The certificate for servers that ask for one; PEM files.
    package private(set) var certificateFile: String?
    package private(set) var keyFile: String?
    /// The name that certificates must have, and that is sent as SNI; `nil` for the server's host.
    package private(set) var serverName: String?
    package private(set) var terms = TLSTermSettings()

    package static let keys = Keys<Self> {
        Key("ca", orNone: \.authorities, .path("a PEM file's path"))
            .means("The authorities that are believed.", otherwise: "the machine's")
        Key("certificate", orNone: \.certificateFile, .path("a PEM file's path"))
            .means("What is shown to a server that asks for a client certificate.")
        Key("key", orNone: \.keyFile, .path("a PEM file's path"))
            .means("The key of this certificate.")
        Key("server_name", orNone: \.serverName, name)
            .means("The name that the certificate must have.", otherwise: "the host of servers")
        TLSTermSettings.keys.all.map { Key($0, of: \.terms) }
        Key("insecure", \.isInsecure, .flag)
            .means("Whether any certificate is accepted, so that nothing is verified.")
    }.checked { $1.terms.check($0) }

    private static let name = ValueForm<String>.name("a host name or an IP address") { text in
        switch HostPattern(text: text) {
        case .exact?: text.lowercased()
        case .address(let address)?: address.text
        case .any?, .under?, nil: nil
        }
    }

    /// The word for TLS with all defaults.
    private static let word = "verify"

    static let form = ValueForm<Self>.declared { reader, key in
        guard let node = reader.node(key) else { return nil }
        reader.log.record?.text(reader.path(key), ReadingRecord.Text(use: word, words: [word]))
        if case .text(word) = node.content { return reader.located(key, Self()) }
        guard case .mapping = node.content else {
            reader.error(
                key,
                found: node.found,
                use: "verify, or a mapping with " + keys.names.joined(separator: ", ")
            )
            return nil
        }
        return Stated(reader, key, over: Self()).map { reader.located(key, $0.value) }
    }

    /// Checks the files without reading them.
    func validate(_ keyPath: String, of servers: [ServerAddress], _ files: NamedFiles) {
        let log = files.log
        func located(_ key: String, _ file: String?) -> Located<String>? {
            file.map { log.located("\(keyPath).\(key)", $0) }
        }
        let authorities = located("ca", authorities)
        let certificate = located("certificate", certificateFile)
        let key = located("key", keyFile)
        for file in [authorities, certificate].compactMap(\.self) { _ = files.require(file) }
        if let key { files.require(key: key) }
        for (one, other, name) in [(certificate, key, "key"), (key, certificate, "certificate")] {
            guard let one, other == nil else { continue }
            log.error(one, found: "it alone", use: "\(name) beside it")
        }
        if isInsecure, let authorities {
            let use = "ca, which is verified, or insecure: true, which verifies nothing"
            log.error(authorities, found: "it and insecure", use: use)
        }
        if !isInsecure, serverName == nil, let socket = servers.first(where: \.isUnix) {
            log.error(
                log.located(keyPath, self),
                found: "no server_name for \(socket.text), which has no name of its own",
                use: "server_name: the name in the server's certificate"
            )
        }
    }

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
