import Cryptography
import Rules
import SoftwareAuthenticator
import Tokens
import Verification

// Sessions of a trial.
extension Trial {
    /// A rule as ``rule(_:_:)`` that takes sessions.
    static func sessionRule(
        _ mode: Mode = .enforce,
        _ edit: (inout Rule.Demands) -> Void = { _ in }
    ) -> Rule {
        rule(mode) { demands in
            demands.accept = .assertionOrSession
            edit(&demands)
        }
    }

    /// The rule of requests that open a session.
    var openingRule: Rule { Rule.openingSessions(apps: policies.map(\.id)) }

    /// Asks for a session, as the endpoint's rule judges it.
    mutating func ask(_ key: inout SoftwareKey) throws -> Verdict {
        let request = try self.request("POST", "/.well-known/app-attest/sessions", content: "")
        return try send(request, by: &key, openingRule)
    }

    /// Opens a session.
    mutating func openSession(_ key: inout SoftwareKey) throws -> SoftwareSession {
        guard let grant = try ask(&key).grant else { throw Absent() }
        let opened = sessions.open(grant.keyID, grant.evidence, now: now.seconds)
        return SoftwareSession(
            id: String(decoding: opened.id, as: UTF8.self),
            secret: opened.secret.array
        )
    }

    /// Signs a request with a session, lets it be changed on the way, and judges it.
    mutating func send(
        _ request: SoftwareKey.Request,
        by session: inout SoftwareSession,
        _ rule: Rule = Trial.sessionRule(),
        onTheWay edit: (inout Wire) -> Void = { _ in }
    ) throws -> Verdict {
        guard let proof = session.proof(of: request, signing: rule.signing) else { throw Absent() }
        var wire = Wire(request, proof)
        edit(&wire)
        return try judge(wire, rule)
    }
}
