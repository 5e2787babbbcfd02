import Encodings
package import OutboundCalls
import Rules
package import SettingsReading

/// What the configuration says of the calls about the tokens of a proof.
package struct TokenCallSettings: Hashable, Sendable {
    /// `timeout`: of a call, from the hand-in to the answer. Default 3s, 100ms…30s.
    package var timeout = Duration.seconds(3)
    /// `concurrent`: concurrent calls. Default 8, 1…64.
    package var concurrent = 8
    /// `queue`: calls that wait. Default 1000, 1…100000. A further call is not made.
    package var queue = 1_000
    /// `rate`: calls per second. Default 50, 1…1000.
    package var perSecond = 50
    /// `roots`: the certificates of a PEM file, instead of the system's; `nil` for the system's.
    package var roots: [UInt8]?
    /// `proxy`: a proxy that supports CONNECT. Default none.
    package var proxy: String?

    package init() {}

    package var limits: CallLine.Limits {
        CallLine.Limits(concurrent: concurrent, queue: queue, perSecond: perSecond)
    }

    /// The limits of the memory of used tokens. Parties take a token for some minutes, and Google's
    /// are taken for an hour at most, so an hour is enough.
    package var used: UsedTokens.Limits {
        UsedTokens.Limits(callsPerSecond: perSecond, hosts: 1, lifetime: 3_600, spell: 300)
    }
}

extension TokenCallSettings: Declared {
    package static let keys = Keys<Self> {
        Key("timeout", \.timeout, .time(.milliseconds(100) ... .seconds(30)))
            .means("Of a call, from the hand-in to the answer.")
        Key("rate", \.perSecond, .perSecond(of: "calls in a second", max: 1_000))
            .means("Calls in a second.")
        Key("concurrent", \.concurrent, .count(1...64)).means("Calls at once.")
        Key("queue", \.queue, .count(1...100_000))
            .means("Calls that wait. A further one is not made.")
        OutboundKeys.reaching(by: \.proxy)
    }
}

/// The parties that know the tokens of proofs, by the proofs' names.
package struct TokenParties<Settings: Sendable>: Sendable {
    private var parties: [String: Settings] = [:]
    /// Those before the last reload: event loops still have requests that began with them.
    private var former: [String: Settings] = [:]

    package init(_ settings: [Settings], _ name: (Settings) -> String) {
        replace(by: settings, name)
    }

    /// The configuration was reloaded.
    package mutating func replace(by settings: [Settings], _ name: (Settings) -> String) {
        former = parties
        parties = [:]
        for party in settings { parties[name(party)] = party }
    }

    package subscript(_ proof: String) -> Settings? { parties[proof] ?? former[proof] }
}

extension UInt8 {
    /// Whether it is an unreserved character (RFC 3986 §2.3).
    package var isUnreserved: Bool { isAlphanumeric || "-._~".utf8.contains(self) }

    /// Whether it is in the alphabet of `token68` (RFC 9110 §11.2).
    package var isToken68: Bool { isUnreserved || "+/=".utf8.contains(self) }
}
