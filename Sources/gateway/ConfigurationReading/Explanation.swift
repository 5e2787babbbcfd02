import Cryptography
package import DeviceKey
import HTTPWire
import RequestBinding
package import Rules
import Services
package import Signatures
import Verification

/// Why a request matches a rule, and what the rule demands: `portcullis explain`.
package struct Explanation: Sendable {
    /// A rule that was checked before the one that matched.
    struct Passed: Sendable {
        let id: String
        let place: String
        let because: String
    }

    /// The place of the request in the rollout of its rule.
    struct Placement: Sendable {
        let subject: String
        let bucket: Int
        let share: Share
        let isEnforced: Bool
    }

    /// A rule that the path matches in other interpretations than the written one.
    struct Rival: Sendable {
        let id: String
        let place: String
        /// The path in the first of these interpretations.
        let path: String
        /// The steps of servers with this interpretation.
        let interpretation: PathInterpretation
    }

    let request: String
    let outcome: RequestTrial.Outcome
    let passed: [Passed]
    let rule: Rule?
    /// The state of the rule, and its file's mode and rollout; `nil` where the file decides.
    let order: (standing: RolloutStanding, file: String)?
    let rivals: [Rival]
    let place: String?
    let origin: String?
    /// The client data, line by line, with `<…>` where the sketch does not say; empty when the rule
    /// verifies nothing.
    let clientData: [String]
    let placement: Placement?
    /// Listeners where other proxies ask without content, if the rule signs the content.
    let blindListeners: [String]
    /// The description of the client's key; `nil` when the request names none.
    let key: ExplainedKey?

    /// The decision about a request that several rules may refuse whatever its proof; `nil` for
    /// every other request.
    let dispute: Dispute?

    /// The rule that decides about such a request.
    struct Dispute: Sendable {
        let rule: Rule
        let place: String
        let isRefused: Bool
        let status: Int
        let reason: String

        /// - client: without it, a rollout refuses where it includes every client.
        init(
            _ route: DisputedRoute,
            _ configuration: GatewayConfiguration,
            client: IPAddress?,
            now: UnixTime
        ) {
            func refuses(_ rule: Rule) -> Bool {
                rule.refuses { rollout in
                    guard let client else { return rollout.share(at: now) == .whole }
                    return rollout.enforces(client.bytes.span, at: now)
                }
            }
            rule = route.deciding(refuses)
            place = configuration.rulePlaces[rule.index].text
            isRefused = refuses(rule)
            let outcome = LocalOutcome.refused(Refusal(route.reason))
            (status, reason) = (outcome.row.status, outcome.reason)
        }
    }

    /// Why the gateway refuses the request whatever its proof; `nil` when it does not.
    var refusal: (status: Int, reason: String)? {
        if let dispute { return dispute.isRefused ? (dispute.status, dispute.reason) : nil }
        guard case .refused(let status, let reason) = outcome else { return nil }
        return (status, reason)
    }

    /// Explains the treatment of a request by a configuration.
    ///
    /// - orders: the orders of operators, beside the configuration.
    /// - now: the moment for which schedules are computed.
    /// - lookUp: looks up a key in the store; `nil` for no look-up.
    package init(
        _ sketch: RequestSketch,
        _ configuration: GatewayConfiguration,
        orders: RolloutOrders = RolloutOrders(),
        now: UnixTime,
        lookUp: (KeyID) -> KeyFinding? = { _ in nil }
    ) {
        let configuration = configuration.ordered(by: orders)
        let trial = RequestTrial(sketch, configuration)
        request = "\(sketch.method) \(sketch.url)"
        rule = trial.rule
        order = Self.order(of: trial.rule, configuration, orders)
        var rivals: [Rival] = []
        for other in trial.rivals where !rivals.contains(where: { $0.id == other.rule.id }) {
            rivals.append(
                Rival(
                    id: other.rule.id,
                    place: configuration.rulePlaces[other.rule.index].text,
                    path: String(decoding: other.path, as: UTF8.self),
                    interpretation: other.interpretation
                )
            )
        }
        self.rivals = rivals
        outcome = trial.outcome
        if case .disputed(let route) = trial.outcome {
            dispute = Dispute(route, configuration, client: sketch.client, now: now)
        } else {
            dispute = nil
        }
        passed = Self.passed(trial, configuration)
        place = trial.rule.map { configuration.rulePlaces[$0.index].text }
        origin = trial.rule.map { configuration.origin(of: $0)?.name } ?? nil
        let keyID = sketch.key ?? trial.keyID
        self.key = keyID.flatMap { keyID in
            lookUp(keyID).map { ExplainedKey(keyID, $0, for: trial.rule, apps: configuration.apps) }
        }
        if case .rule(let rule) = trial.outcome, rule.mode.verifies {
            clientData = rule.readsKeys ? ExpectedClientData.lines(rule, trial) : []
            placement = Self.placement(rule, keyID, client: sketch.client, now: now)
            blindListeners = rule.signing.coversBody ? configuration.blindListeners : []
        } else {
            blindListeners = []
            clientData = []
            placement = nil
        }
    }

    private static func order(
        of rule: Rule?,
        _ configuration: GatewayConfiguration,
        _ orders: RolloutOrders
    ) -> (standing: RolloutStanding, file: String)? {
        guard let rule, let filed = configuration.fileRules.rules.first(where: { $0.id == rule.id })
        else { return nil }
        let standing = orders.standing(of: filed)
        return standing.orderText == nil ? nil : (standing, filed.modeText)
    }

    private static func passed(
        _ trial: borrowing RequestTrial,
        _ configuration: GatewayConfiguration
    ) -> [Passed] {
        guard let found = trial.rule else { return [] }
        return configuration.rules.rules[..<found.index].map { rule in
            Passed(
                id: rule.id,
                place: configuration.rulePlaces[rule.index].text,
                because: trial.mismatch(rule) ?? "it matches"
            )
        }
    }

    private static func placement(
        _ rule: Rule,
        _ keyID: KeyID?,
        client: IPAddress?,
        now: UnixTime
    ) -> Placement? {
        guard rule.mode == .enforce else { return nil }
        var subject: (name: String, bytes: [UInt8])?
        if rule.rollout.subject == .key, rule.readsKeys, let keyID {
            subject = ("key", keyID.bytes)
        } else if let client {
            subject = ("address \(client.text)", client.bytes)
        }
        guard let subject else { return nil }
        let share = rule.rollout.share(at: now)
        let bucket = rule.rollout.bucket(of: subject.bytes.span)
        return Placement(
            subject: subject.name,
            bucket: bucket.number,
            share: share,
            isEnforced: bucket.isWithin(share)
        )
    }
}

/// The client data that a sketched request has to sign, as far as the sketch says. A request with a
/// sequence number is signed with a session, if the rule accepts sessions.
enum ExpectedClientData {
    static func lines(_ rule: Rule, _ trial: borrowing RequestTrial) -> [String] {
        let sequence = rule.accept.takesSessions ? trial.values(sequenceName).first : nil
        let challenge = sequence ?? challenge(rule, trial)
        switch rule.signing {
        case .content: return ["<the content's bytes, without a line feed>"]
        case .challenge: return ["\(challenge ?? "-") (without a line feed)"]
        case .lines(let parts, let headers):
            var lines = RequestLines()
            let (method, target) = (Array(trial.method.utf8), Array(trial.target.utf8))
            lines.begin(sequence == nil ? parts : parts.inSession, method: method.span)
            lines.target(target.span)
            digest(trial, &lines)
            if let challenge = challenge.map({ Array($0.utf8) }) {
                lines.challenge(challenge.span)
            } else {
                lines.challenge(nil)
            }
            for name in headers {
                let bytes = Array(name.utf8)
                lines.header(bytes.span)
                for value in trial.values(bytes) {
                    let value = Array(value.utf8)
                    lines.value(value.span)
                }
                lines.endHeader()
            }
            // The last line also ends with a line feed, and nothing follows.
            return String(decoding: lines.bytes, as: UTF8.self)
                .split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                .map(String.init)
        }
    }

    private static let sequenceName = Array("app-attest-sequence".utf8)

    private static func challenge(_ rule: Rule, _ trial: borrowing RequestTrial) -> String? {
        let field = String(decoding: rule.fields.challenge, as: UTF8.self)
        if let value = trial.values(rule.fields.challenge).first { return value }
        return rule.challenge == .required ? "<the value of \(field)>" : nil
    }

    /// A request without content signs the digest of zero bytes.
    private static func digest(_ trial: borrowing RequestTrial, _ lines: inout RequestLines) {
        let declared = trial.values(Array("content-digest".utf8)).joined(separator: ", ")
        let bytes = Array(declared.utf8)
        switch (trial.head.framing, ContentDigest.read(bytes.span)) {
        case (_, .digest(let digest)): lines.digest(digest.span)
        case (.none, _), (.length(0), _): lines.digest(SHA256.digest(of: []).bytes.span)
        case (_, .malformed): describe("<Content-Digest can't be read>", &lines)
        case (_, .absent): describe("sha-256=:<base64 of SHA-256 over the content>:", &lines)
        }
    }

    private static func describe(_ words: String, _ lines: inout RequestLines) {
        let bytes = Array(words.utf8)
        lines.digest(describedAs: bytes.span)
    }
}
