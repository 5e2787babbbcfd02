package import Challenges
import Cryptography
import HTTPWire
package import KeyStore
package import Lanes
import Rules
package import Services
import Sessions
import Verification

// The operators' listener: metrics, status and probes, on a lane that serves no clients, so that
// operators see how those lanes stand when they are stuck. The address that is listened on decides
// who may connect, without TLS; OperatorGate decides who may call. GET and HEAD only, and no
// request content, but for calls: about devices, servers and rollouts.
extension ProxyLane {
    /// A lane for operators. It has no origins and no rules, and writes no access log.
    package static func operators(
        _ lane: Lane,
        _ source: any SnapshotSource,
        keys: KeyTable,
        issuer: ChallengeIssuer,
        calls: OperatorCalls = OperatorCalls(),
        timeouts: Timeouts = .operators,
        limits: ProxyLimits = .operators
    ) -> ProxyLane {
        ProxyLane(
            lane: lane,
            settings: .operators(timeouts, limits),
            judge: Judge(apps: [], keys: keys, challenges: issuer, sessions: SessionTable()),
            services: .operators(source, calls),
            issuer: issuer,
            keys: keys,
            addresses: AddressTable(
                capacity: limits.connectionsMax,
                key: (RandomOctets.word(), RandomOctets.word())
            ),
            held: HeldLedger(),
            writeLog: { _, _ in }
        )
    }
}

extension ProxySettings {
    fileprivate static func operators(_ timeouts: Timeouts, _ limits: ProxyLimits) -> ProxySettings
    {
        let nothing = Rule(id: "operators", index: 0, match: .all, origin: nil, mode: .deny)
        guard let rules = RuleSet([], default: nothing) else {
            preconditionFailure("ProxySettings: a default rule alone is a rule set")
        }
        return ProxySettings(
            rules: rules,
            origins: [],
            timeouts: timeouts,
            limits: limits,
            trustedProxies: [],
            addressSource: .xForwardedFor,
            writesForwarded: false,
            keepsOldClients: true,
            logsAccess: false,
            spillFolder: ""
        )
    }
}

extension Timeouts {
    /// Those of the operators' listener: 30 s for the next request, 5 s for a head, and 10 s for a
    /// reader to take a byte, however slowly.
    package static var operators: Timeouts {
        var timeouts = Timeouts()
        timeouts.handshake = 30_000
        timeouts.idle = 30_000
        timeouts.head = 5_000
        timeouts.responseIdle = 10_000
        timeouts.responseMinimumRate = 0
        return timeouts
    }
}

extension ProxyLimits {
    /// Those of the operators' listener: 64 connections, heads of probes, scrapers and browsers (8
    /// KiB, targets of 1 KiB, 64 fields), and content of calls about devices (16 KiB).
    package static var operators: ProxyLimits {
        var limits = ProxyLimits()
        limits.connectionsMax = 64
        limits.requestHead.headBytesMax = 8 << 10
        limits.requestHead.targetBytesMax = 1 << 10
        limits.requestHead.fieldsMax = 64
        limits.drainBytesMax = 64 << 10
        limits.endpointBodyMax = 16 << 10
        return limits
    }
}
