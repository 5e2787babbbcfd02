import ConfigurationReading
import Dispatch
import HTTPWire
import KeyStore
import Lanes
import Proxy
import Services
import TLSSession
import Telemetry
import Verification

/// One lane with what lives on it.
///
/// Everything behind `bound` is reached on the lane's queue only.
final class LaneUnit: Sendable {
    let lane: Lane
    let bound: LaneBound<Residents>

    /// What lives on the lane.
    final class Residents {
        let proxy: ProxyLane
        var listeners: [Listener] = []
        /// The certificate of each listener, in their order; `nil` for a plain one.
        var certificates: [TLSContext?] = []

        init(_ proxy: ProxyLane) { self.proxy = proxy }
    }

    init(_ lane: Lane, _ proxy: sending ProxyLane) {
        self.lane = lane
        bound = LaneBound(Residents(proxy), on: lane)
    }

    deinit { lane.stop() }

    /// A listening socket of the lane.
    struct Socket: Sendable {
        let descriptor: Int32
        let ownership: Listener.Ownership
        let tls: TLSContext?
        /// What its connections begin with.
        let preface: ListenSettings.Preface
        let http2: ListenSettings.HTTP2
        let decides: DecisionForm?
    }

    /// Begins to serve and to accept. `shortageChanged` is told on the lane when a listener begins
    /// to pause for want of descriptors, with why, and, `nil`, when it has taken all who waited.
    func start(
        _ sockets: [Socket],
        descriptorsMax: Int32 = DescriptorLimit.forClients,
        shortageChanged: @escaping @Sendable (SocketError?) -> Void,
        certificateRefused: @escaping @Sendable (TLSFailure.Reason, IPAddress, Int) -> Void = {
            _,
            _,
            _ in
        },
        leftOut: @escaping @Sendable (UInt64) -> Void = { _ in },
        proxiedFailed: @escaping @Sendable (ProxiedFault) -> Void = { _ in }
    ) {
        lane.start()
        let (lane, bound) = (lane, bound)
        lane.perform {
            let residents = bound.value
            residents.certificates = sockets.map(\.tls)
            residents.proxy.report(
                proxiedFailed: proxiedFailed,
                certificateRefused: certificateRefused,
                refusalsLeftOut: leftOut
            )
            for (index, socket) in sockets.enumerated() {
                let listener = Listener(descriptor: socket.descriptor, on: lane)
                listener.descriptorsMax = descriptorsMax
                listener.ownership = socket.ownership
                listener.accepted = { [unowned residents] descriptor, peer in
                    let entrance = ProxyLane.Entrance(
                        tls: residents.certificates[index],
                        takesHTTP2: socket.http2 == .on,
                        decides: socket.decides
                    )
                    switch socket.preface {
                    case .none: residents.proxy.accept(descriptor, peer, entrance)
                    case .proxyHeader: residents.proxy.acceptProxied(descriptor, peer, entrance)
                    }
                }
                listener.paused = { [unowned residents] _ in
                    residents.proxy.acceptPaused()
                }
                listener.shortageChanged = shortageChanged
                do {
                    try listener.start()
                    residents.listeners.append(listener)
                } catch {
                    preconditionFailure("LaneUnit: a bound socket can't be watched: \(error)")
                }
            }
        }
    }

    /// Replaces what the proxy was told. `makeJudge` is called on the lane, which keeps the judge's
    /// scratch memory.
    func reload(
        _ next: LoadedConfiguration,
        _ services: ServiceTable,
        makeJudge: @escaping @Sendable () -> Judge
    ) {
        let (lane, bound) = (lane, bound)
        lane.perform {
            let residents = bound.value
            residents.certificates = next.certificates.listeners
            residents.proxy.reload(next.settings, judge: makeJudge(), services: services) {
                next.accessLog?.write($0, dropped: $1)
            }
        }
    }

    /// Shows other certificates to clients from now on.
    func replaceCertificates(_ certificates: [TLSContext?]) {
        let (lane, bound) = (lane, bound)
        lane.perform { bound.value.certificates = certificates }
    }

    /// Looks after the origins' servers for all lanes.
    func watchOrigins(_ tell: @escaping @Sendable (OriginWatch.Notice) -> Void) {
        let (lane, bound) = (lane, bound)
        lane.perform { bound.value.proxy.watchOrigins(tell) }
    }

    /// Takes other modes and rollouts of the same rules; `taken` is called when it has.
    func replaceRules(
        _ settings: ProxySettings,
        _ services: ServiceTable,
        makeJudge: @escaping @Sendable () -> Judge,
        taken: @escaping @Sendable () -> Void
    ) {
        let (lane, bound) = (lane, bound)
        lane.perform {
            bound.value.proxy.replaceRules(
                settings,
                judge: makeJudge(),
                services: services
            )
            taken()
        }
    }

    /// Hands over what was seen at rules with a guard.
    func takeGuardCounts(_ completion: @escaping @Sendable ([GuardCounts.Entry]) -> Void) {
        let (lane, bound) = (lane, bound)
        lane.perform { completion(bound.value.proxy.takeGuardCounts()) }
    }

    /// Takes other addresses of the servers of some origins; all else is as it was.
    func replaceServers(_ settings: ProxySettings, of origins: Set<Int>) {
        let (lane, bound) = (lane, bound)
        lane.perform { bound.value.proxy.replaceServers(settings, of: origins) }
    }

    /// Stops accepting; `emptied` is called once the listeners have ended and no client is left.
    func drain(emptied: @escaping @Sendable () -> Void) {
        let (lane, bound) = (lane, bound)
        lane.perform {
            let residents = bound.value
            let proxy = residents.proxy
            // First, so that clients accepted from now on are told that the connection ends.
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

    /// Ends what has not ended by itself.
    func abort() {
        let (lane, bound) = (lane, bound)
        lane.perform {
            let residents = bound.value
            // Listeners that still accept handshakes under way end at once.
            for listener in residents.listeners { listener.deadlinePassed() }
            residents.proxy.abort()
        }
    }

    /// Hands over a copy of what is remembered of refusals.
    func refusals(_ completion: @escaping @Sendable (RefusalMemory) -> Void) {
        let (lane, bound) = (lane, bound)
        lane.perform { completion(bound.value.proxy.refusals) }
    }

    /// Hands over what was counted for reports since it was asked last.
    func takeReport(_ completion: @escaping @Sendable ([ReportCounts.Entry]) -> Void) {
        let (lane, bound) = (lane, bound)
        lane.perform { completion(bound.value.proxy.takeReport()) }
    }

    /// Hands over a copy of what was counted.
    func gather(_ completion: @escaping @Sendable (LaneFacts) -> Void) {
        let (lane, bound) = (lane, bound)
        lane.perform {
            let counted = bound.value.proxy.counted
            completion(
                LaneFacts(
                    number: lane.number,
                    openConnections: counted.clients,
                    pooledConnections: counted.pooled,
                    tally: counted.tally
                )
            )
        }
    }
}

extension LaneUnit: CommitListener {
    func commitEnded(_ report: CommitReport) {
        let (lane, bound) = (lane, bound)
        lane.perform { bound.value.proxy.commitEnded(report) }
    }
}
