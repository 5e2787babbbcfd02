package import HTTPWire
package import Proxy
import Rules

/// An origin in the file's words.
struct OriginDraft {
    private static let keys =
        [
            "servers", "host", "keep_fields", "paths", "proxy_protocol", "http2",
            "tls", "audience",
        ] + OriginRules.keys.names

    let name: Located<String>
    let servers: [Located<ServerSettings>]
    let keptFields: [Located<String>]
    let http2: Located<ListenSettings.HTTP2>?
    let paths: PathInterpretation
    let tls: OriginTLSDraft?
    let audience: Located<String>?
    private let rules: OriginRules
    private let host: Located<String?>?
    private let preface: Located<OriginPreface>?

    /// The origins of the file, in their order.
    static func all(_ reader: MappingReader, _ timeouts: Timeouts) -> [OriginDraft] {
        guard let node = reader.node("origins") else { return [] }
        guard case .mapping(let members) = node.content, !members.isEmpty else {
            let use = "a mapping: name: { servers: [10.0.0.5:8080] }"
            reader.log.error(node.place, "origins", found: node.found, use: use)
            return []
        }
        return members.compactMap { OriginDraft($0, timeouts, log: reader.log) }
    }

    private init?(_ member: SourceNode.Member, _ timeouts: Timeouts, log: ProblemLog) {
        let keyPath = "origins.\(member.key)"
        guard let reader = MappingReader(member.value, keyPath, keys: Self.keys, log: log) else {
            return nil
        }
        name = Located(value: member.key, place: member.place, keyPath: keyPath)
        reader.require("servers", use: "servers: [10.0.0.5:8080]")
        host = reader.value("host", use: "client | a host name, with a port or without") { text in
            Self.hostPolicy(text)
        }
        preface = reader.word("proxy_protocol")
        http2 = reader.word("http2")
        reader.checkHTTP2(http2?.value ?? .off, preface)
        servers = reader.servers()
        rules = reader.originRules(timeouts)
        keptFields = Self.keptFields(reader)
        paths = reader.paths("paths") ?? .all
        tls = reader.node("tls").flatMap { OriginTLSDraft($0, reader.path("tls"), log: log) }
        audience = reader.value("audience", use: VerdictDraft.nameUse, VerdictDraft.name)
    }

    private static func keptFields(_ reader: MappingReader) -> [Located<String>] {
        let use =
            "fields that are deleted by default, such as X-HTTP-Method-Override or "
            + "CF-Connecting-IP; rules/docs/origins.md lists them"
        let names: [Located<String>]? = reader.list("keep_fields", of: use) { text in
            FieldNameText.lowerCase(text).flatMap { KeptFields.isKeepable($0) ? $0 : nil }
        }
        return names ?? []
    }

    /// `nil` for a text that is neither the word nor a host; otherwise the host to send, if any.
    private static func hostPolicy(_ text: String) -> String?? {
        text == "client" ? .some(nil) : ConfigurationDraft.hostName(text).map { .some($0) }
    }

    /// The origin; checks the files of TLS without reading them.
    func validated(_ files: NamedFiles) -> UpstreamSettings {
        UpstreamSettings(
            name: name.value,
            servers: servers.map(\.value),
            rules: rules,
            host: host?.value,
            keptFields: keptFields.map(\.value),
            preface: preface?.value ?? .none,
            http2: http2?.value ?? .off,
            tls: tls?.validated(servers: servers, files),
            audience: audience?.value,
            paths: paths
        )
    }
}

/// One origin: a named group of servers that rules refer to.
package struct UpstreamSettings: Hashable, Sendable {
    package let name: String
    /// At least one that is no backup, none twice.
    package let servers: [ServerSettings]
    /// How they are used.
    package let rules: OriginRules
    /// What is sent as `Host`; `nil` (`client`, the default) for what the client sent.
    package let host: String?
    /// Names, in lower case, of fields that the origin gets although they are deleted by default;
    /// default none.
    package let keptFields: [String]
    /// `proxy_protocol`: what servers get of the client before the first request. Default off.
    package let preface: OriginPreface
    /// `http2`: whether its servers are spoken to in HTTP/2: under TLS by ALPN, without TLS by
    /// prior knowledge (RFC 9113 §3.2, §3.3). Default off.
    package let http2: ListenSettings.HTTP2
    /// `tls`: `nil` for an origin that is spoken to in the clear.
    package let tls: OriginTLSSettings?
    /// `audience`: the `aud` of the signed verdicts that it gets; `nil`, the default, for that of
    /// `verdict.jwt`.
    package let audience: String?
    /// `paths`: the steps that this origin may take on a path before it chooses a handler. Default:
    /// all that servers take.
    package let paths: PathInterpretation

    package var addresses: [ServerAddress] { servers.map(\.address) }
}

/// One server of an origin, as the configuration has it.
package struct ServerSettings: Hashable, Sendable {
    package let address: ServerAddress
    /// `weight`: its share of the requests. Default 1.
    package var weight = 1
    /// `backup`: it gets requests only while no other server is up. Default false.
    package var isBackup = false

    /// `max_connections`: the most concurrent connections to it, of all event loops, including idle
    /// ones. Default 0, for no limit. Others: nginx's `max_conns`, HAProxy's `maxconn`.
    package var connectionsMax = 0

    /// The form in which `check` prints it.
    var text: String {
        let weight = weight == 1 ? "" : " weight \(weight)"
        let most = connectionsMax == 0 ? "" : " max_connections \(connectionsMax)"
        return address.text + weight + most + (isBackup ? " backup" : "")
    }

    static let weights = 1...1000
    static let connections = 0...1_000_000
}

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
        if let key { files.require(key: key) }
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
