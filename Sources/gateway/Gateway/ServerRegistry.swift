import ConfigurationReading
import EventLoops

/// The known addresses of the origins' servers.
///
/// A name without an address stops no other work. If no server of an origin is known, its requests
/// are answered 502 origin-unreachable until one is.
struct ServerRegistry: Sendable {
    /// A change by a look-up.
    struct Change: Equatable {
        enum Kind: Equatable {
            /// It had no address and has one now.
            case found
            /// It has new addresses.
            case moved
            /// It has none any more, or the resolver does not answer; the last addresses stay in
            /// use.
            case lost
        }

        let server: ServerAddress
        let kind: Kind
    }

    private(set) var addresses: [ServerAddress: [SocketAddress]] = [:]
    /// Names for which the resolver did not answer in time.
    private var unanswered: Set<ServerAddress> = []
    /// Names whose loss was reported.
    private var lost: Set<ServerAddress> = []

    /// Looks up all servers of a configuration. Waits for the resolver: not on an event loop, and
    /// not on the control queue. Names without a finding keep their earlier addresses.
    init(
        _ configuration: GatewayConfiguration,
        _ resolver: Resolver,
        knowing before: [ServerAddress: [SocketAddress]] = [:]
    ) {
        let servers = configuration.origins.flatMap(\.addresses)
        addresses = before.filter { servers.contains($0.key) }
        _ = take(resolver.addresses(of: servers))
    }

    /// Takes the findings of a look-up.
    ///
    /// - Returns: the changes to report.
    mutating func take(_ findings: [ServerAddress: Resolver.Finding]) -> [Change] {
        var changes: [Change] = []
        for (server, finding) in findings {
            unanswered.remove(server)
            let known = addresses[server]
            switch finding {
            case .addresses(let found):
                lost.remove(server)
                if known == nil {
                    changes.append(Change(server: server, kind: .found))
                } else if Set(known?.map(\.identity) ?? []) != Set(found.map(\.identity)) {
                    changes.append(Change(server: server, kind: .moved))
                } else {
                    // Resolvers rotate the order; keeping the pool in use is better.
                    continue
                }
                addresses[server] = found
            case .none, .noAnswer:
                if finding == .noAnswer { unanswered.insert(server) }
                guard known != nil, lost.insert(server).inserted else { continue }
                changes.append(Change(server: server, kind: .lost))
            }
        }
        return changes.sorted { $0.server.text < $1.server.text }
    }

    /// The servers without an address, in the configuration's order.
    func unknown(_ configuration: GatewayConfiguration) -> [String] {
        configuration.origins.flatMap(\.addresses).filter { addresses[$0] == nil }.map(\.text)
    }

    /// A warning for each server without an address.
    func problems(_ configuration: GatewayConfiguration) -> [Problem] {
        configuration.origins.flatMap { origin in
            origin.addresses.enumerated().compactMap { index, server in
                guard addresses[server] == nil else { return nil }
                let keyPath = "origins.\(origin.name).servers[\(index)]"
                let why =
                    unanswered.contains(server)
                    ? "for which the resolver does not answer" : "which has no address"
                return Problem(
                    .warning,
                    configuration.place(of: keyPath),
                    keyPath,
                    found: "\(server.text), \(why); the gateway keeps looking it up",
                    use: "a name that this machine resolves (getent hosts NAME), or an IP address"
                )
            }
        }
    }
}

extension SocketAddress {
    /// Distinguishes two addresses of one name.
    fileprivate var identity: [UInt8] { bytes }
}
