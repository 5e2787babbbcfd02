import Encodings
import HTTPWire
import RequestBinding
import Rules

/// A rule in the file's words: all optional, each value with its place.
struct RuleDraft {
    /// The forms of `sign`.
    enum Sign {
        case parts(SignedParts)
        case content
        case challenge
    }

    /// The contents of `rollout`.
    struct RolloutDraft {
        let schedule: Rollout.Schedule
        let subject: Rollout.Subject
        let salt: String?
    }

    /// The contents of `body`.
    struct BodyDraft {
        enum Digest: String, CaseIterable {
            case none, held, streamed
        }

        var digest: Located<Digest>?
        var limit: Located<ByteCount>?
        var memory: Located<ByteCount>?
    }

    /// The contents of `device`.
    struct DeviceDraft {
        /// `nil` when it could not be read.
        var refused: Set<DeviceBits>?
        var onError: Located<DependencyErrorRule>?
        var timeout: Located<Duration>?
    }

    static let keys = [
        "id", "match", "origin", "mode", "rollout", "apps", "sign", "headers", "challenge",
        "counter", "accept", "also", "body", "on_error", "unsupported", "preflight", "risk",
        "device", "integrity", "fields", "next_challenge", "allow_encoded", "guard",
    ]
    /// Keys about verification. They mean nothing where nothing is verified.
    static let verifyingKeys = [
        "rollout", "apps", "sign", "headers", "challenge", "counter", "accept", "also", "body",
        "on_error", "unsupported", "preflight", "risk", "device", "integrity", "fields",
        "next_challenge", "guard",
    ]

    let reader: MappingReader
    let id: Located<String>?
    let match: Located<RouteMatch>?
    let origin: Located<String>?
    let mode: Located<Mode>?
    let rollout: Located<RolloutDraft>?
    let apps: [Located<String>]?
    let sign: Located<Sign>?
    let headers: [Located<String>]?
    let challenge: Located<ChallengeRule>?
    let pointer: Located<JSONPointer>?
    let counter: Located<CounterRule>?
    /// The names of proofs in `accept` and `also`.
    let accept: [Located<String>]?
    let also: [Located<String>]?
    let body: Located<BodyDraft>?
    let onError: Located<DependencyErrorRule>?
    let unsupported: UnsupportedDraft?
    let preflight: Located<PreflightRule>?
    let device: Located<DeviceDraft>?
    let risk: RiskDraft?
    let integrity: IntegrityRuleDraft?
    let fallback: GuardRule?
    let fields: Located<FieldNames>?
    let nextChallenge: Located<Bool>?
    let allowEncoded: [Located<PathConstructs.RawValue>]?

    /// The key path of a rule in problems: its id, or its place among the others where it has none.
    /// A record has places alone.
    static func keyPath(of node: SourceNode, at place: String, _ log: ProblemLog) -> String {
        guard log.record == nil, case .mapping(let members) = node.content,
            case .text(let text)? = members.first(where: { $0.key == "id" })?.value.content
        else { return place }
        return id(text) ?? place
    }

    /// Reads a rule, or the `default` section, which has no id and no match.
    init?(_ node: SourceNode, _ keyPath: String, isDefault: Bool, log: ProblemLog) {
        let keys = isDefault ? Self.keys.filter { $0 != "id" && $0 != "match" } : Self.keys
        guard let reader = MappingReader(node, keyPath, keys: keys, log: log) else { return nil }
        self.reader = reader
        id = reader.value("id", use: "1…64 letters, digits, dots, hyphens or underscores", Self.id)
        match = reader.match("match")
        origin = reader.value("origin", use: "the name of an origin") { $0 }
        mode = reader.word("mode")
        rollout = reader.rollout("rollout")
        apps = reader.list("apps", of: "App IDs") { $0 }
        sign = reader.sign("sign")
        headers = reader.list("headers", of: "field names") { FieldNameText.lowerCase($0) }
        (challenge, pointer) = reader.challenge("challenge")
        counter = reader.counter("counter")
        accept = reader.list("accept", of: "proofs: assertion, session") { $0 }
        also = reader.list("also", of: "names of `proofs`") { $0 }
        body = reader.body("body")
        onError = reader.word("on_error")
        unsupported = UnsupportedDraft(reader, "unsupported")
        preflight = reader.word("preflight")
        device = reader.device("device")
        risk = RiskDraft(reader, "risk")
        integrity = IntegrityRuleDraft(reader, "integrity")
        fallback = GuardRule(reader, "guard")
        fields = reader.fields("fields")
        nextChallenge = reader.flag("next_challenge")
        let names = PathConstructs.settingNames.map(\.name)
        allowEncoded = reader.list(
            "allow_encoded",
            of: names.joined(separator: ", "),
            words: names
        ) { text in
            PathConstructs.settingNames.first { $0.name == text }?.construct.rawValue
        }
    }

    /// `default` is the id of the default rule.
    private static func id(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy { $0.isAlphanumeric || ".-_".utf8.contains($0) }
        return isPlain && (1...64).contains(text.utf8.count) && text != "default" ? text : nil
    }
}

extension PathConstructs {
    /// The constructs that a rule may admit, in the words of `allow_encoded`.
    static let settingNames: [(name: String, construct: PathConstructs)] = [
        ("slash", .encodedSlash), ("backslash", .encodedBackslash), ("bare-backslash", .backslash),
        ("invalid-utf8", .invalidEncoding),
    ]
}

/// Names of fields in texts.
enum FieldNameText {
    /// The name in lower case; `nil` when it is no token (RFC 9110 §5.6.2) or has an underscore,
    /// which many servers can't tell from a hyphen.
    static func lowerCase(_ text: String) -> String? {
        let bytes = Array(text.lowercased().utf8)
        let isToken = bytes.allSatisfy { $0.isAlphanumeric || "!#$%&'*+-.^`|~".utf8.contains($0) }
        return isToken && (1...256).contains(bytes.count) ? text.lowercased() : nil
    }
}

extension GuardRule {
    /// Reads a rule's `guard`; `nil`, with a problem at the key's place, when it can't be read.
    init?(_ reader: MappingReader, _ key: String) {
        let keys = ["refused", "of", "window", "minimum"]
        guard let inner = reader.inner(key, keys: keys) else { return nil }
        inner.require("refused", use: "refused: the share of the installs, such as 2%")
        _ = inner.word("of", Unit.self)
        let window = inner.duration("window", in: .seconds(60)...Duration.seconds(3_600))
        let minimum = inner.integer("minimum", in: 10...1_000_000)
        let refused = inner.value("refused", use: "a share above 0%, below 100%") { text in
            Share(percent: text).flatMap { $0 > .none && $0 < .whole ? $0 : nil }
        }
        guard let refused else { return nil }
        self.init(refused: refused.value)
        if let window { self.window = window.value }
        if let minimum { self.minimum = minimum.value }
    }

    /// `falls back to observe when more than 2% of at least 100 installs are refused in 5m`
    package var text: String {
        """
        falls back to observe when more than \(refused.text) of at least \(minimum) installs are \
        refused in \(window.settingText)
        """
    }
}

/// The contents of a rule's `risk`.
struct RiskDraft {
    let max: Located<Int>
    private let unknown: RiskRule.Unknown?
    private let action: Located<RiskRule.Action>?
    private let maxAge: Int?
    private let rollout: Located<Rollout.Schedule>?
    private let salt: String?
    private let log: ProblemLog

    /// `nil`, with a problem at the key's place, when it can't be read.
    init?(_ reader: MappingReader, _ key: String) {
        let keys = ["max", "unknown", "action", "max_age", "rollout"]
        guard let inner = reader.inner(key, keys: keys) else { return nil }
        log = reader.log
        inner.require("max", use: "max: the highest metric that is within the limit, such as 8")
        unknown = inner.word("unknown", RiskRule.Unknown.self)?.value
        action = inner.word("action")
        let day = Duration.seconds(86_400)
        maxAge = inner.count("max_age", of: day, in: day...(day * 400)).map { Int($0.value) }
        (rollout, salt) = Self.rollout(inner)
        guard let max = inner.integer("max", in: 0...RiskRule.limitMax) else { return nil }
        self.max = max
    }

    private static func rollout(
        _ reader: MappingReader
    ) -> (schedule: Located<Rollout.Schedule>?, salt: String?) {
        let keys = MappingReader.scheduleKeys + ["salt"]
        guard let inner = reader.inner("rollout", keys: keys) else { return (nil, nil) }
        let salt = inner.salt()
        let schedule = inner.schedule().map {
            Located(value: $0, place: inner.place, keyPath: inner.keyPath)
        }
        return (schedule, salt)
    }

    /// The rule's part. A rollout names the refused clients, so without `refuse` it is a mistake.
    ///
    /// - `id`: the rule's id. A key's place in this rollout is independent of its place in the
    ///   rule's own.
    func rule(ofRule id: String) -> RiskRule {
        var rule = RiskRule(max: max.value, salt: salt ?? "\(id)/risk")
        rule.unknown = unknown ?? .allow
        rule.action = action?.value ?? .mark
        rule.daysMax = maxAge ?? RiskRule.daysMaxDefault
        guard let rollout else { return rule }
        rule.rollout = Rollout(rollout.value, by: .key, salt: salt ?? "\(id)/risk")
        if rule.action == .mark {
            log.error(
                rollout,
                found: "it with action: mark, where it has no effect",
                use: "action: refuse, or no rollout"
            )
        }
        return rule
    }
}
