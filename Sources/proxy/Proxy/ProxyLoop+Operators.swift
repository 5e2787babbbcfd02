import Cryptography
package import EventLoops
import HTTPWire
package import KeyStore
import Rules
package import Services
package import Tokens
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
        keys: KeyTable,
        issuer: ChallengeIssuer,
        calls: OperatorCalls = OperatorCalls(),
        timeouts: Timeouts = .operators,
        limits: ProxyLimits = .operators
    ) -> ProxyLoop {
        ProxyLoop(
            loop: loop,
            settings: .operators(timeouts, limits),
            judge: Judge(apps: [], keys: keys, challenges: issuer, sessions: SessionTable()),
            services: .operators(source, calls),
            issuer: issuer,
            keys: keys,
            addresses: AddressTable(
                capacity: limits.connectionsMax,
                key: (RandomBytes.word(), RandomBytes.word())
            ),
            held: HeldLedger(),
            writeLog: { _, _ in }
        )
    }
}
