import ConfigurationReading
import Dispatch
import HTTPWire
import Lanes
import Synchronization

/// Addresses of what a configuration names. Names are resolved at start and reload.
struct Resolver: Sendable {
    /// The system's way from a name and a port to addresses. It blocks, and can't be interrupted.
    typealias LookUp = @Sendable (String, UInt16) -> [SocketAddress]

    /// How long all names of a start or reload may take together. A resolver that lost one packet
    /// asks again after 5 s (resolv.conf(5), `timeout`).
    static let patience = Duration.seconds(10)

    /// Where names are looked up, each on a thread of its own as far as Dispatch has them.
    private static let queue = DispatchQueue(label: "portcullis.names", attributes: .concurrent)

    /// What has been found so far; look-ups that were given up may still run.
    private final class Findings: Sendable {
        let byName = Mutex<[ServerAddress: [SocketAddress]]>([:])
        let isGivenUp = Atomic(false)
    }

    let lookUp: LookUp
    var patience = Resolver.patience

    /// The addresses of each server. Waits for them: not on a lane, and not on the control queue.
    ///
    /// - Throws: when a name has none, or there is no answer in time.
    func addresses(
        of servers: [ServerAddress]
    ) throws(GatewayError) -> [ServerAddress: [SocketAddress]] {
        let findings = Findings()
        let group = DispatchGroup()
        for case .name(let name, let port) in Set(servers) {
            Self.queue.async(group: group) { [lookUp] in
                guard !findings.isGivenUp.load(ordering: .relaxed) else { return }
                let found = lookUp(name, port)
                findings.byName.withLock { $0[.name(name, port: port)] = found }
            }
        }
        let outcome = group.wait(timeout: .now() + .milliseconds(Int(patience.milliseconds)))
        findings.isGivenUp.store(true, ordering: .relaxed)
        var all = findings.byName.withLock { $0 }
        for server in servers {
            switch server {
            case .ip(let address, let port):
                all[server] = SocketAddress(ip: address.text, port: port).map { [$0] } ?? []
            case .unix(let path): all[server] = SocketAddress(unixPath: path).map { [$0] } ?? []
            case .name where all[server] == nil && outcome == .timedOut:
                throw GatewayError(
                    "\(server.text): no answer from the resolver within \(patience)",
                    hint: "Check the servers in /etc/resolv.conf, or use an IP address."
                )
            case .name: break
            }
        }
        return all
    }
}
