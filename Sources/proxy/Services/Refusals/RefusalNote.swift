package import AppAttest
package import HTTPWire
package import KeyStore
package import Rules
package import Verification

/// One refusal as it is remembered for `portcullis why`: what was asked, what was found, and which
/// check failed.
///
/// Nothing secret is told of it: of a key only the short hash that the log has, of a target no
/// query.
package struct RefusalNote: Sendable {
    /// What became of the request.
    package enum Fate: String, Sendable {
        /// The gateway answered in place of the origin.
        case answered
        /// The response could not be completed, and the connection was reset.
        case cutOff = "cut-off"
        /// The origin got it all the same: the rule observes, or the client is outside the rollout.
        case forwarded
    }

    /// What a head asks. Long parts are cut: a note has a bounded size.
    package struct Asked: Sendable {
        /// The most bytes of host and path that are kept.
        package static let partMax = 256

        package let method: [UInt8]
        package let host: [UInt8]
        package let path: [UInt8]

        package init(method: [UInt8], host: [UInt8], path: [UInt8]) {
            self.method = method
            self.host = Self.bounded(host)
            self.path = Self.bounded(path)
        }

        private static func bounded(_ part: [UInt8]) -> [UInt8] {
            part.count <= partMax ? part : Array(part[..<partMax])
        }
    }

    /// What was found out before a check failed.
    package struct Finding: Sendable {
        package let proof: ProofKind?
        /// The key that the request names.
        package let keyID: KeyID?
        package let standing: Ruling.Standing
        /// Of the key, where it is known.
        package let appID: String
        package let environment: KeyEnvironment?
        package let isEnforced: Bool

        package init(_ ruling: Ruling, isEnforced: Bool) {
            proof = ruling.proof
            keyID = ruling.keyID
            standing = ruling.standing
            appID = ruling.appID
            environment = ruling.environment
            self.isEnforced = isEnforced
        }
    }

    /// Milliseconds since 1970.
    package let at: Int64
    package let id: RequestID
    package let trace: RequestID?
    package let client: IPAddress
    package let asked: Asked
    package let outcome: LocalOutcome
    package let fate: Fate
    /// What the client got; 0 for nothing.
    package let status: Int
    /// The rule, or the gateway's own endpoint.
    package let place: Place
    /// `nil` where nothing was judged.
    package let finding: Finding?

    /// Who decided.
    package enum Place: Sendable {
        case rule(String, Mode)
        case endpoint(String)
    }

    package init(
        at: Int64,
        id: RequestID,
        trace: RequestID?,
        client: IPAddress,
        asked: Asked,
        outcome: LocalOutcome,
        fate: Fate,
        status: Int,
        place: Place,
        finding: Finding?
    ) {
        self.at = at
        self.id = id
        self.trace = trace
        self.client = client
        self.asked = asked
        self.outcome = outcome
        self.fate = fate
        self.status = status
        self.place = place
        self.finding = finding
    }
}
