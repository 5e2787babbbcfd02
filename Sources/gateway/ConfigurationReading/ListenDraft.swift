import HTTPWire

/// A listener in the file's words.
struct ListenDraft {
    private static let keys = [
        "address", "tls", "http2", "proxy_protocol", "decides", "content",
    ]

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
