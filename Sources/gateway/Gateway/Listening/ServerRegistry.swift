import ConfigurationReading
import Dispatch
import EventLoops
import HTTPWire
import Synchronization

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
                    at: configuration.place(of: keyPath),
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

/// Looks up the addresses of names in a configuration.
struct Resolver: Sendable {
    /// The system's look-up of a name and a port. It blocks, and can't be interrupted.
    typealias LookUp = @Sendable (String, UInt16) -> [SocketAddress]

    /// The result of one server's look-up.
    enum Finding: Sendable, Equatable {
        /// At least one address.
        case addresses([SocketAddress])
        /// The name has no address, or the resolver failed.
        case none
        /// The resolver did not answer in time.
        case noAnswer

        static func == (left: Finding, right: Finding) -> Bool {
            switch (left, right) {
            case (.none, .none), (.noAnswer, .noAnswer): true
            case (.addresses(let left), .addresses(let right)):
                left.map(\.bytes) == right.map(\.bytes)
            case (.addresses, _), (.none, _), (.noAnswer, _): false
            }
        }
    }

    /// The longest time for all names together. A resolver that lost one packet asks again after 5
    /// s (resolv.conf(5), `timeout`).
    static let patience = Duration.seconds(10)

    /// The queue on which names are looked up, each on its own thread as far as Dispatch has
    /// threads.
    private static let queue = DispatchQueue(label: "portcullis.names", attributes: .concurrent)

    /// The findings so far; look-ups that were given up may still run.
    private final class Findings: Sendable {
        let byName = Mutex<[ServerAddress: [SocketAddress]]>([:])
        let isGivenUp = Atomic(false)
    }

    var lookUp: LookUp = { SocketAddress.resolve($0, port: $1) }
    var patience = Resolver.patience

    /// The finding for each server. Waits: not on an event loop, and not on the control queue.
    func addresses(of servers: [ServerAddress]) -> [ServerAddress: Finding] {
        let findings = Findings()
        let group = DispatchGroup()
        for case .name(let name, let port) in Set(servers) {
            Self.queue.async(group: group) { [lookUp] in
                guard !findings.isGivenUp.load(ordering: .relaxed) else { return }
                let found = lookUp(name, port)
                findings.byName.withLock { $0[.name(name, port: port)] = found }
            }
        }
        _ = group.wait(timeout: .now() + .milliseconds(Int(patience.milliseconds)))
        findings.isGivenUp.store(true, ordering: .relaxed)
        let byName = findings.byName.withLock { $0 }
        var all: [ServerAddress: Finding] = [:]
        for server in servers {
            guard let found = server.socketAddress.map({ [$0] }) ?? byName[server] else {
                all[server] = .noAnswer
                continue
            }
            all[server] = found.isEmpty ? Finding.none : .addresses(found)
        }
        return all
    }
}

extension ServerAddress {
    /// The address of a server that needs no look-up; `nil` for a name.
    var socketAddress: SocketAddress? {
        switch self {
        case .ip(let address, let port): SocketAddress(ip: address.text, port: port)
        case .unix(let path): SocketAddress(unixPath: path)
        case .name: nil
        }
    }
}

/// The intervals of repeated look-ups of names.
package struct LookUpPace: Sendable {
    /// The interval after an incomplete look-up; doubled each time, up to ``longest``.
    package var first = Duration.milliseconds(500)
    /// The interval while all names are known, and the longest one after failures. It is also at
    /// most the shortest `resolve_interval` of the configuration.
    package var longest = Duration.seconds(86_400)
    private var pause: Duration?

    package init() {}

    /// The pause before the next look-up.
    mutating func next(isComplete: Bool) -> Duration {
        guard !isComplete else {
            pause = nil
            return longest
        }
        let now = min(pause ?? first, longest)
        pause = now * 2
        return now
    }
}
