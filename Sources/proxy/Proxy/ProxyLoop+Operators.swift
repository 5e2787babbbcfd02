package import EventLoops
package import KeyStore
import Rules
package import Services
import Verification

// The operators' listener: metrics, status and probes. It runs on an event loop that serves no
// clients, so that operators can see the other event loops when these are stuck. The listening
// address decides who may connect, without TLS. OperatorGate decides who may call. Only GET and
// HEAD, and no request content, except for calls about devices, servers and rollouts.
extension ProxyLoop {
    /// An event loop for operators. It has no origins and no rules, and writes no access log.
    package static func operators(
        _ loop: EventLoop,
        _ source: any SnapshotSource,
        calls: OperatorCalls = OperatorCalls(),
        settings: ProxySettings = .operators(.operators, .operators),
        over decider: Decider
    ) -> ProxyLoop {
        ProxyLoop(
            loop,
            settings: settings,
            judge: Judge(apps: [], decider: decider),
            services: .operators(source, calls),
            shared: SharedTables(
                decider: decider,
                addressesMax: settings.limits.connectionsMax
            )
        )
    }
}
