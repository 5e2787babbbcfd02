package import HTTPWire
package import Proxy
import Rules

/// An origin in the file's words.
struct OriginDraft: Declared {
    static let keys = Keys<Self> {
        Key("servers").means("Where requests go: addresses, or mappings with weight and the like.")
        Key("host", \.host, hostPolicy)
            .means("What is sent as Host: client for what the client sent, or this host.")
        Key("keep_fields", \.keptFields, keptFields)
            .means("Fields that the origin gets although they are deleted by default.")
        Key("paths", \.paths, ValueForm { $0.paths($1) })
            .means("Interpretations of a path that this origin does not make.")
        Key("proxy_protocol", into: \.preface) { $0.word($1) }
            .means("Whether servers get a header of the PROXY protocol before the first request.")
        Key("http2", \.http2, .word).means("Whether servers are spoken to in HTTP/2.")
        Key("tls", orNone: \.tls, ValueForm { OriginTLSSettings.read($0, $1) })
            .means("TLS to the servers: verify, or a mapping. Without it, plain HTTP.")
        Key("audience", orNone: \.audience, .text(VerdictDraft.nameUse, VerdictDraft.name))
            .means("The aud of its signed verdicts. Without it, that of verdict.jwt.")
        OriginRules.keys.all.map { Key($0, of: \.rules) }
    }.checked { reader, origin in
        reader.require("servers", use: "servers: [10.0.0.5:8080]")
        reader.checkHTTP2(origin.http2, origin.preface)
        origin.servers = reader.servers()
    }

    let name: Located<String>
    private(set) var servers: [Located<ServerSettings>] = []
    private(set) var keptFields: [String] = []
    private(set) var http2 = ListenSettings.HTTP2.off
    private(set) var paths = PathInterpretation.all
    private(set) var tls: OriginTLSSettings?
    private(set) var audience: String?
    private var rules = OriginRules()
    private var host: String?
    private var preface: Located<OriginPreface>?

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
        let names = Self.keys.names
        guard let reader = MappingReader(member.value, keyPath, keys: names, log: log) else {
            return nil
        }
        name = Located(value: member.key, place: member.place, keyPath: keyPath)
        (rules.connectTimeout, rules.firstByteTimeout) = (timeouts.connect, timeouts.firstByte)
        Self.keys.read(reader, into: &self)
    }

    private static let keptFields = ValueForm<[String]>.texts(
        "fields that are deleted by default, such as X-HTTP-Method-Override or CF-Connecting-IP; "
            + "rules/docs/origins.md lists them"
    ) { text in
        FieldNameText.lowerCase(text).flatMap { KeptFields.isKeepable($0) ? $0 : nil }
    }

    private static let hostPolicy = ValueForm<String?>(
        { reader, key in
            let use = "client | a host name, with a port or without"
            return reader.value(key, use: use) { (text) -> String?? in
                text == "client" ? .some(nil) : ConfigurationDraft.hostName(text).map { .some($0) }
            }
        },
        text: { $0 ?? "client" }
    )

    /// The origin; checks the files of TLS without reading them.
    func validated(_ files: NamedFiles) -> UpstreamSettings {
        tls?.validate("\(name.keyPath).tls", servers.map(\.value.address), files)
        return UpstreamSettings(
            name: name.value,
            servers: servers.map(\.value),
            rules: rules,
            host: host,
            keptFields: keptFields,
            preface: preface?.value ?? .none,
            http2: http2,
            tls: tls,
            audience: audience,
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
    package var address = ServerAddress.unix("")
    package var weight = 1
    package var isBackup = false
    /// With idle ones. Others: nginx's `max_conns`, HAProxy's `maxconn`.
    package var connectionsMax = 0

    /// The form in which `check` prints it.
    var text: String {
        let weight = weight == 1 ? "" : " weight \(weight)"
        let most = connectionsMax == 0 ? "" : " max_connections \(connectionsMax)"
        return address.text + weight + most + (isBackup ? " backup" : "")
    }
}

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
    package private(set) var minimumVersion = ListenSettings.TLS.Version.tls12

    static let keys = Keys<Self> {
        Key("ca", orNone: \.authorities, .path("a PEM file's path"))
            .means("The authorities that are believed. Without it, the machine's.")
        Key("certificate", orNone: \.certificateFile, .path("a PEM file's path"))
            .means("What is shown to a server that asks for a client certificate.")
        Key("key", orNone: \.keyFile, .path("a PEM file's path"))
            .means("The key of this certificate.")
        Key("server_name", orNone: \.serverName, name)
            .means("The name that the certificate must have. Without it, the host of servers.")
        Key("minimum", \.minimumVersion, .word).means("The oldest accepted version of TLS.")
        Key("insecure", \.isInsecure, .flag)
            .means("Whether any certificate is accepted, so that nothing is verified.")
    }

    private static let name = ValueForm<String>.text("a host name or an IP address") { text in
        switch HostPattern(text: text) {
        case .exact?: text.lowercased()
        case .address(let address)?: address.text
        case .any?, .under?, nil: nil
        }
    }

    /// The word for TLS with all defaults.
    private static let word = "verify"

    fileprivate static func read(_ reader: MappingReader, _ key: String) -> Located<Self>? {
        guard let node = reader.node(key) else { return nil }
        reader.log.record?.text(reader.path(key), use: word, words: [word])
        if case .text(word) = node.content { return reader.located(key, Self()) }
        guard case .mapping = node.content else {
            reader.error(
                key,
                found: node.found,
                use: "verify, or a mapping with ca, certificate, key, server_name, minimum, "
                    + "insecure"
            )
            return nil
        }
        return Stated(node, reader.path(key), over: Self(), reader.log).map {
            reader.located(key, $0.value)
        }
    }

    /// Checks the files without reading them.
    fileprivate func validate(_ keyPath: String, _ servers: [ServerAddress], _ files: NamedFiles) {
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
