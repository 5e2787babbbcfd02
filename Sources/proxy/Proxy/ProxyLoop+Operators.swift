package import Challenges
import Cryptography
package import EventLoops
import HTTPWire
package import KeyStore
import Rules
package import Services
import Sessions
import Verification

// The operators' listener: metrics, status and probes, on an event loop that serves no clients, so
// that operators see how those event loops stand when they are stuck. The address that is listened
// on decides who may connect, without TLS; OperatorGate decides who may call. GET and HEAD only,
// and no request content, but for calls: about devices, servers and rollouts.
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
