package import HTTPWire
package import Proxy
import Rules

/// One origin: a named group of servers that rules refer to.
package struct UpstreamSettings: Hashable, Sendable, Declared {
    package let name: String
    /// At least one that is no backup, none twice.
    package private(set) var servers: [ServerSettings] = []
    /// How they are used.
    package private(set) var rules = OriginRules()
    /// What is sent as `Host`; `nil` (`client`) for what the client sent.
    package private(set) var host: String?
    /// Names, in lower case, of fields that the origin gets although they are deleted by default.
    package private(set) var keptFields: [String] = []
    /// What servers get of the client before the first request.
    package private(set) var preface = OriginPreface.none
    /// Whether its servers are spoken to in HTTP/2: under TLS by ALPN, without TLS by prior
    /// knowledge (RFC 9113 §3.2, §3.3).
    package private(set) var http2 = ListenSettings.HTTP2.off
    /// `nil` for an origin that is spoken to in the clear.
    package private(set) var tls: OriginTLSSettings?
    /// The `aud` of the signed verdicts that it gets; `nil` for that of `verdict.jwt`.
    package private(set) var audience: String?
    /// The steps that this origin may take on a path before it chooses a handler.
    package private(set) var paths = PathInterpretation.all

    private init(_ name: String, _ timeouts: Timeouts) {
        self.name = name
        (rules.connectTimeout, rules.firstByteTimeout) = (timeouts.connect, timeouts.firstByte)
    }

    package var addresses: [ServerAddress] { servers.map(\.address) }
    var keyPath: String { "origins.\(name)" }

    package static let keys = Keys<Self> {
        Key("servers", \.servers, ServerSettings.list)
            .means("Where requests go: addresses, or mappings with weight and the like.")
            .mandatory("servers: [10.0.0.5:8080]")
        Key("host", \.host, hostPolicy)
            .means("What is sent as Host: client for what the client sent, or this host.")
        Key("keep_fields", \.keptFields, keptFields)
            .means("Fields that the origin gets although they are deleted by default.")
        Key("paths", \.paths, ValueForm({ $0.paths($1) }, text: { $0.settingText ?? "any" }))
            .means("Interpretations of a path that this origin does not make.")
        Key("proxy_protocol", \.preface, .word)
            .means("Whether servers get a header of the PROXY protocol before the first request.")
        Key("http2", \.http2, .word).means("Whether servers are spoken to in HTTP/2.")
        Key("tls", orNone: \.tls, OriginTLSSettings.form)
            .means("TLS to the servers: verify, or a mapping.", otherwise: "plain HTTP")
        Key("audience", orNone: \.audience, VerdictSettings.name)
            .means("The aud of its signed verdicts.", otherwise: "that of verdict.jwt")
        OriginRules.keys.all.map { Key($0, of: \.rules) }
    }.checked { $1.checkHTTP2($0) }

    /// The origins of the file, in their order.
    static func all(_ reader: MappingReader, _ timeouts: Timeouts) -> [UpstreamSettings] {
        guard let node = reader.node("origins") else { return [] }
        // A folder: its files were read before, or their faults were reported.
        reader.log.record?.text("origins", FileFolder.Content.origins.text)
        if case .text = node.content { return [] }
        guard case .mapping(let members) = node.content, !members.isEmpty else {
            let use = "a mapping: name: { servers: [10.0.0.5:8080] }"
            reader.log.error(node.place, "origins", found: node.found, use: use)
            return []
        }
        return members.compactMap { member in
            let origin = UpstreamSettings(member.key, timeouts)
            return Stated(member.value, at: origin.keyPath, over: origin, reader.log)?.value
        }
    }

    private static let keptFields = ValueForm<[String]>.texts(
        "fields that are deleted by default, such as X-HTTP-Method-Override or CF-Connecting-IP; "
            + "rules/docs/origins.md lists them",
        text: \.self
    ) { text in
        TextForm.fieldName(text).flatMap { KeptFields.isKeepable($0) ? $0 : nil }
    }

    private static let hostPolicy = ValueForm<String?>(
        { reader, key in
            let use = "client | a host name, with a port or without"
            return reader.takingVariables.value(key, use: use) { (text) -> String?? in
                text == "client" ? .some(nil) : TextForm.host(text).map { .some($0) }
            }
        },
        text: { $0 ?? "client" }
    )

    /// Refuses what has no effect or no meaning with or without `http2`.
    private func checkHTTP2(_ reader: MappingReader) {
        guard http2 == .off else {
            guard preface != .none else { return }
            reader.error(
                "proxy_protocol",
                found: "a PROXY header with http2: on, whose connections carry many clients",
                use: "one of both"
            )
            return
        }
        if case .mapping(let members)? = reader.node("check")?.content,
            let service = members.first(where: { $0.key == "grpc" })
        {
            let keyPath = reader.path("check.grpc")
            reader.log.error(service.place, keyPath, found: "it without http2", use: "http2: on")
        }
        for key in ["http2_streams", "http2_connections"] where reader.has(key) {
            reader.error(key, found: "it without http2", use: "http2: on")
        }
    }

    /// Checks the files of TLS without reading them.
    func validate(_ files: NamedFiles) {
        tls?.validate("\(keyPath).tls", of: addresses, files)
    }

    /// The servers as a person reads them.
    var serversText: String { servers.map(\.text).joined(separator: ", ") }
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
