package import Rules

/// The spans that the gateway tells a collector by OTLP/HTTP. Nothing is recorded without an
/// endpoint.
package struct TracingSettings: Hashable, Sendable, Declared {
    package static let headersMax = 16
    package static let attributesMax = 32
    private static let textMax = 4_096

    /// `http://` or `https://`, with a path; `nil` where no spans are recorded.
    package var endpoint: String?
    /// `Name: value` each. They may hold secrets, so no page or message has them.
    package var headers: [String] = []
    /// `ratio`: of requests that come without a caller's decision.
    package var ratio = Share(millionths: 10_000) ?? .none
    package var keepsRefusals = false
    package var serviceName = "portcullis"
    /// `name=value` each.
    package var resource: [String] = []
    package var timeout = Duration.seconds(10)
    /// Spans that wait to be sent.
    package var queueMax = 2_048
    /// The certificates of a PEM file, instead of the system's; `nil` for the system's.
    package var roots: [UInt8]?
    package var proxy: String?

    package init() {}

    package static let keys = Keys<Self> {
        Key("endpoint", orNone: \.endpoint, .text("http://host:4318 | https://host/path", url))
            .means(
                "The collector that takes spans by OTLP/HTTP, in JSON. Without a path it is "
                    + "/v1/traces.",
                otherwise: "no spans"
            )
        Key("headers", \.headers, .texts("fields such as `X-Api-Key: 1234`", none: nil, field))
            .means("Fields of each call, for a collector that asks for a key.")
        Key("ratio", \.ratio, share)
            .means("The share of requests that are recorded where no trusted proxy has decided.")
            .because("a share is enough to see where the time goes")
        Key("refusals", \.keepsRefusals, .onOff)
            .means("Whether each refused request has its span, recorded or not.")
        Key("service_name", \.serviceName, .text("a name", name))
            .means("The resource's service.name.")
        Key(
            "resource",
            \.resource,
            .texts("attributes such as deployment.environment.name=test", none: nil, attribute)
        )
        .means("Further attributes of the resource.")
        OutboundKeys.reaching(by: \.proxy)
        Key("timeout", \.timeout, .time(.milliseconds(100) ... .seconds(60)))
            .means("Of a whole call.")
        Key("queue", \.queueMax, .count(64...65_536))
            .means("Spans that wait to be sent. Further ones are dropped and counted.")
    }.checked { reader, settings in
        if settings.headers.count > headersMax {
            reader.error("headers", found: "more", use: "\(headersMax) fields at most")
        }
        if settings.resource.count > attributesMax {
            reader.error("resource", found: "more", use: "\(attributesMax) attributes at most")
        }
    }

    private static let share = ValueForm<Share>(
        { $0.value($1, use: "a percentage, 0%…100%") { Share(percent: $0) } },
        text: { $0.text }
    )

    /// The endpoint with its path; `nil` for what is no address.
    private static func url(_ text: String) -> String? {
        guard text.utf8.count <= 1_024,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") })
        else { return nil }
        for scheme in ["https://", "http://"] where text.hasPrefix(scheme) {
            let host = text.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" }
            let address = scheme + String(host)
            let isFit = OutboundKeys.isAddress(address, scheme: scheme, needsPort: false)
            guard isFit else { return nil }
            return text == address ? address + "/v1/traces" : text
        }
        return nil
    }

    private static func name(_ text: String) -> String? {
        text.isEmpty || text.utf8.count > 255 || !isPrintable(text) ? nil : text
    }

    private static func field(_ text: String) -> String? {
        let parts = text.split(separator: ":", maxSplits: 1)
        let isToken = parts.first?.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte)
                || (0x61...0x7A).contains(byte) || [0x2D, 0x5F].contains(byte)
        }
        guard parts.count == 2, isToken == true, text.utf8.count <= textMax, isPrintable(text)
        else { return nil }
        return text
    }

    private static func attribute(_ text: String) -> String? {
        let parts = text.split(separator: "=", maxSplits: 1)
        return parts.count == 2 && text.utf8.count <= textMax && isPrintable(text) ? text : nil
    }

    private static func isPrintable(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
    }
}

extension Stated<TracingSettings> {
    /// The settings, with the file of the authorities read.
    func validated(_ files: NamedFiles) -> TracingSettings {
        var valid = value
        valid.roots = files.roots(reader)
        return valid
    }
}
