package import EventLoops

/// A length of time in the form of the command line.
package struct LoadTime: Equatable, Sendable, CustomStringConvertible {
    package let nanoseconds: UInt64
    package let description: String

    private static let units: [(name: String, factor: UInt64)] = [
        ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000),
    ]

    /// Whole seconds.
    package static func seconds(_ count: UInt32) -> LoadTime {
        LoadTime(nanoseconds: UInt64(count) * 1_000_000_000, description: "\(count)s")
    }
}

extension LoadTime {
    /// Reads `500ms`, `10s`, `5m`, `1h`: a whole number and its unit, at most 1,000 hours.
    package init?(_ text: String) {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let unit = text.dropFirst(digits.count)
        guard let count = UInt64(digits), count <= 3_600_000_000,
            let factor = Self.units.first(where: { $0.name == unit })?.factor
        else { return nil }
        let (product, overflow) = count.multipliedReportingOverflow(by: factor)
        guard !overflow, product <= 3_600_000_000_000_000 else { return nil }
        self.init(nanoseconds: product, description: text)
    }
}

/// The URL of the requests.
package struct LoadURL: Equatable, Sendable {
    package let isSecure: Bool
    /// Without the brackets of an IPv6 address.
    package let host: String
    package let port: UInt16
    /// Path and query, in the form of the request line.
    package internal(set) var target: String
    /// Host and port, in the form of the Host field.
    package let authority: String

    /// Reads `http://127.0.0.1:8080/v1/orders?dry=1`; `nil` for anything else than http and https
    /// with a host, for user information, and for a fragment.
    package init?(_ text: String) {
        guard let scheme = ["http://", "https://"].first(where: text.hasPrefix) else { return nil }
        isSecure = scheme == "https://"
        let rest = text.dropFirst(scheme.count)
        let end = rest.firstIndex { "/?".contains($0) } ?? rest.endIndex
        let authority = rest[..<end]
        let target = rest[end...]
        guard !authority.isEmpty, !authority.contains("@"), !text.contains("#"),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        self.authority = String(authority)
        self.target = (target.hasPrefix("/") ? "" : "/") + target
        var name = authority
        var port = isSecure ? UInt16(443) : 80
        if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
            guard let given = UInt16(authority[authority.index(after: colon)...]), given > 0 else {
                return nil
            }
            port = given
            name = authority[..<colon]
        }
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        guard !name.isEmpty else { return nil }
        host = String(name)
        self.port = port
    }

    /// The whole.
    package var text: String { "\(isSecure ? "https" : "http")://\(authority)\(target)" }
}

/// The version of HTTP on the connections.
package enum LoadVersion: Equatable, Sendable {
    case http1
    /// In the clear with prior knowledge (RFC 9113 §3.3), under TLS by ALPN.
    ///
    /// - streams: requests of one connection that may be under way together.
    case http2(streams: Int)

    var streams: Int { if case .http2(let streams) = self { streams } else { 1 } }
}

/// The gateway's address, and the certificates to trust.
package struct ServerPlace: Sendable {
    let address: SocketAddress
    let version: LoadVersion
    private let tls: TLSContext?
    private let host: String

    /// How long one attempt to connect may take, and the time from its end to the next one.
    private static let attemptMilliseconds: Int32 = 1_000
    private static let pauseMilliseconds: Int32 = 50

    /// - Parameters:
    ///   - address: the gateway's.
    ///   - tls: `nil` for a plain connection. It offers the protocol of `version`.
    ///   - host: the name that its certificate has to have.
    ///   - version: the version of HTTP.
    package init(
        _ address: SocketAddress,
        tls: TLSContext?,
        host: String,
        speaking version: LoadVersion = .http1
    ) {
        (self.address, self.tls, self.host, self.version) = (address, tls, host, version)
    }

    /// The TLS machine of a new connection; `nil` for a plain one.
    func session() throws(TLSFailure) -> TLSSession? {
        guard let tls else { return nil }
        return try TLSSession(connecting: tls, to: host)
    }

    /// Waits until the gateway takes connections, since it may be starting just now. Blocks.
    ///
    /// - Parameters:
    ///   - time: how long; when it is over, the run itself says that no gateway is there.
    ///   - begins: called once, when the first attempt has failed.
    package func awaitGateway(within time: LoadTime, begins: () -> Void) {
        let deadline = ContinuousClock.now + .nanoseconds(time.nanoseconds)
        guard !address.takesConnections(within: Self.attemptMilliseconds) else { return }
        begins()
        repeat {
            SocketAddress.pause(milliseconds: Self.pauseMilliseconds)
        } while !address.takesConnections(within: Self.attemptMilliseconds) && .now < deadline
    }
}
