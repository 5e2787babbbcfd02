import ConfigurationReading
import Dispatch
import EventLoops
import HTTPWire
import KeyStore
import Proxy
import Services
import Telemetry
import Verification

/// One event loop with the objects that live on it.
///
/// Everything inside `bound` is used only on the event loop's queue.
final class LoopUnit: Sendable {
    let loop: EventLoop
    let bound: LoopBound<Residents>

    /// The objects that live on the event loop.
    final class Residents {
        let proxy: ProxyLoop
        var listeners: [Listener] = []
        /// The certificate of each listener, in their order; `nil` for a plain one.
        var certificates: [TLSContext?] = []

        init(_ proxy: ProxyLoop) { self.proxy = proxy }
    }

    init(_ loop: EventLoop, _ proxy: sending ProxyLoop) {
        self.loop = loop
        bound = LoopBound(Residents(proxy), on: loop)
    }

    deinit { loop.stop() }

    /// Has the event loop run `body`. The unit may end before.
    func perform(_ body: @escaping @Sendable (Residents) -> Void) {
        loop.perform { [bound] in body(bound.value) }
    }

    /// A listening socket of the event loop.
    struct Socket: Sendable {
        let descriptor: Int32
        let ownership: Listener.Ownership
        let tls: TLSContext?
        /// `nil` for operators.
        let settings: ListenSettings?
    }

    /// What an event loop reports while it accepts, on its own queue.
    struct Reports: Sendable {
        /// A listener begins to pause for lack of descriptors, with the reason; `nil` when it has
        /// accepted all waiting clients.
        var shortageChanged: @Sendable (SocketError?) -> Void = { _ in }
        var certificateRefused: @Sendable (TLSFailure.Reason, IPAddress, Int) -> Void = {
            _,
            _,
            _ in
        }
        var leftOut: @Sendable (UInt64) -> Void = { _ in }
        var proxiedFailed: @Sendable (ProxiedFault) -> Void = { _ in }
    }

    /// Begins to serve and to accept.
    func start(
        _ sockets: [Socket],
        _ reports: Reports,
        descriptorsMax: Int32 = DescriptorLimit.forClients
    ) {
        loop.start()
        perform { [loop] residents in
            residents.certificates = sockets.map(\.tls)
            residents.proxy.report(
                proxiedFailed: reports.proxiedFailed,
                certificateRefused: reports.certificateRefused,
                refusalsLeftOut: reports.leftOut
            )
            for (index, socket) in sockets.enumerated() {
                let listener = Listener(descriptor: socket.descriptor, on: loop)
                listener.descriptorsMax = descriptorsMax
                listener.ownership = socket.ownership
                listener.accepted = { [unowned residents] descriptor, peer in
                    let entrance = Entrance(
                        tls: residents.certificates[index],
                        takesHTTP2: socket.settings?.http2 == .on,
                        decides: socket.settings?.decides
                    )
                    switch socket.settings?.preface ?? .none {
                    case .none: entrance.accept(descriptor, from: peer, on: residents.proxy)
                    case .proxyHeader:
                        entrance.acceptProxied(descriptor, from: peer, on: residents.proxy)
                    }
                }
                listener.paused = { [unowned residents] _ in residents.proxy.acceptPaused() }
                listener.shortageChanged = reports.shortageChanged
                do {
                    try listener.start()
                    residents.listeners.append(listener)
                } catch {
                    preconditionFailure("LoopUnit: a bound socket can't be watched: \(error)")
                }
            }
        }
    }

    /// Replaces the settings of the proxy. `makeJudge` is called on the event loop, which keeps the
    /// judge's scratch memory.
    func reload(
        _ settings: ProxySettings,
        _ services: ServiceTable,
        certificates: [TLSContext?],
        accessLog: LogWriter?,
        makeJudge: @escaping @Sendable () -> Judge
    ) {
        perform { residents in
            residents.certificates = certificates
            residents.proxy.reload(settings, judge: makeJudge(), services: services) {
                accessLog?.write($0, dropped: $1)
            }
        }
    }

    /// Shows new certificates to clients from now on.
    func replaceCertificates(_ certificates: [TLSContext?]) {
        perform { $0.certificates = certificates }
    }

    /// Watches the origins' servers for all event loops.
    func watchOrigins(_ tell: @escaping @Sendable (OriginWatch.Notice) -> Void) {
        perform { $0.proxy.watchOrigins(tell) }
    }

    /// Takes new modes and rollouts of the same rules; `taken` is called afterwards.
    func replaceRules(
        _ settings: ProxySettings,
        _ services: ServiceTable,
        makeJudge: @escaping @Sendable () -> Judge,
        taken: @escaping @Sendable () -> Void
    ) {
        perform { residents in
            residents.proxy.replaceRules(settings, judge: makeJudge(), services: services)
            taken()
        }
    }

    /// Hands over the counts of rules with a guard.
    func takeGuardCounts(_ completion: @escaping @Sendable ([GuardCounts.Entry]) -> Void) {
        perform { completion($0.proxy.takeGuardCounts()) }
    }

    /// Counts installs for guards by another hash, from the beginning.
    func hashInstalls(by hash: InstallHash) { perform { $0.proxy.hashInstalls(by: hash) } }

    /// Takes new addresses of the servers of some origins; all else stays.
    func replaceServers(_ settings: ProxySettings, of origins: Set<Int>) {
        perform { $0.proxy.replaceServers(settings, of: origins) }
    }

    /// Has connections end after their request, and new ones too, or no longer. Clients that still
    /// come are served.
    func setDrained(_ isDrained: Bool) {
        perform { residents in
            if isDrained { residents.proxy.drain() } else { residents.proxy.resume() }
        }
    }

    /// Counts the clients' open connections.
    func countClients(_ completion: @escaping @Sendable (Int) -> Void) {
        perform { completion($0.proxy.counted.clients) }
    }

    /// Stops accepting; `emptied` is called once the listeners have ended and no client is left.
    func drain(emptied: @escaping @Sendable () -> Void) {
        perform { residents in
            let proxy = residents.proxy
            // First, so that clients accepted from now on learn that their connection ends.
            proxy.drain()
            var left = residents.listeners.count
            guard left > 0 else { return proxy.whenEmptied(emptied) }
            for listener in residents.listeners {
                listener.endGently {
                    left -= 1
                    guard left == 0 else { return }
                    residents.listeners = []
                    proxy.whenEmptied(emptied)
                }
            }
        }
    }

    /// Ends the requests and connections that have not ended by themselves.
    func abort() {
        perform { residents in
            // Listeners that still accept clients in a handshake end at once.
            for listener in residents.listeners { listener.deadlinePassed() }
            residents.proxy.abort()
        }
    }

    /// Hands over a copy of the kept refusals.
    func refusals(_ completion: @escaping @Sendable (RefusalMemory) -> Void) {
        perform { completion($0.proxy.refusals) }
    }

    /// Hands over the counts for reports since the last query.
    func takeReport(_ completion: @escaping @Sendable ([ReportCounts.Entry]) -> Void) {
        perform { completion($0.proxy.takeReport()) }
    }

    /// Hands over a copy of the counters.
    func gather(_ completion: @escaping @Sendable (LoopFacts) -> Void) {
        perform { [number = loop.number] residents in
            let counted = residents.proxy.counted
            completion(
                LoopFacts(
                    number: number,
                    openConnections: counted.clients,
                    pooledConnections: counted.pooled,
                    tally: counted.tally
                )
            )
        }
    }
}

extension LoopUnit: CommitListener {
    func commitEnded(_ report: CommitReport) { perform { $0.proxy.commitEnded(report) } }
}
