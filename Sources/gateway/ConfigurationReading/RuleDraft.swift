import Encodings
import HTTPWire
import RequestBinding
import Rules

/// A rule in the file's words: all optional, each value with its place.
struct RuleDraft: Declared {
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

        static let keys = Keys<Self> {
            MappingReader.scheduleKeys()
            Key("by").means("What a rollout depends on. Without it, the key.")
            Key("salt").means("Keys that are early with one salt are not with another.")
        }
    }

    /// The contents of `challenge`.
    struct ChallengeDraft: Declared {
        var need: Located<ChallengeRule>?
        var pointer: Located<JSONPointer>?

        static let keys = Keys<Self> {
            Key("need", into: \.need) { $0.word($1) }.means("Whether a challenge is needed.")
            Key("json_pointer", into: \.pointer) {
                $0.value($1, use: "a JSON pointer, such as /auth/challenge") { JSONPointer($0) }
            }
            .means("Where the challenge is in the JSON content.")
        }
    }

    /// The contents of `body`.
    struct BodyDraft: Declared {
        enum Digest: String, CaseIterable {
            case none, held, streamed
        }

        var digest: Located<Digest>?
        var limit: Located<ByteCount>?
        var memory: Located<ByteCount>?

        static let keys = Keys<Self> {
            Key("digest", into: \.digest) { $0.digest($1) }
                .means("When content goes on: held (once all is verified), streamed or none.")
            Key("limit", into: \.limit) { $0.bytes($1, in: ByteCount(1) ... .gibibytes(1 << 20)) }
                .means("More content is answered 413.")
            Key("memory", into: \.memory) { $0.bytes($1, in: ByteCount(0) ... .gibibytes(1)) }
                .means("The rest of held content goes into a file.")
        }
    }

    /// The contents of `device`.
    struct DeviceDraft: Declared {
        /// `nil` when it could not be read.
        var refused: Set<DeviceBits>?
        var onError: Located<DependencyErrorRule>?
        var timeout: Located<Duration>?

        static let keys = Keys<Self> {
            Key("refuse_if", into: \.refused) { $0.refusedBits($1) }
                .means("Bits of which all must be so, or a list of such conditions.")
                .mandatory("refuse_if: { bit0: true }")
            Key("on_error", into: \.onError) { $0.word($1) }
                .means("What happens when the bits are not known. Without it, refuse.")
            Key("timeout", into: \.timeout) {
                $0.duration($1, in: .milliseconds(100) ... .seconds(30))
            }
            .means("How long the request waits for Apple. Without it, 2s.")
        }
    }

    static let keys = Keys<Self> {
        Key("id", into: \.id) {
            $0.value($1, use: "1…64 letters, digits, dots, hyphens or underscores", id)
        }
        .means("The rule's name in logs, metrics and explanations. Keep it.")
        Key("match", into: \.match) { $0.match($1) }
            .means("The requests of the rule. The first rule that matches decides.")
        Key("origin", into: \.origin) { $0.value($1, use: "the name of an origin") { $0 } }
            .means("Where the requests go. Without it, that of default.")
        Key("mode", into: \.mode) { $0.word($1) }
            .means("What is done: off and observe refuse nothing, enforce does, deny all.")
        Key("rollout", into: \.rollout) { $0.rollout($1) }
            .means("The clients that enforce refuses. Without it, all.")
        Key("apps", into: \.apps) { $0.list($1, of: "App IDs") { $0 } }
            .means("The apps whose keys are admitted. Without it, all production apps.")
        Key("sign", into: \.sign) { $0.sign($1) }
            .means("What the app signs. Without it, all four parts.")
        Key("headers", into: \.headers) {
            $0.list($1, of: "field names") { TextForm.fieldName($0) }
        }
        .means("Fields that are signed too, in this order.")
        Key("challenge", into: \.challenge) { $0.challenge($1) }
            .means("Whether a challenge is needed. Without it, required where sign has it.")
        Key("counter", into: \.counter) { $0.counter($1) }
            .means("How counters prevent replays. Without it, { window: 64 }.")
        Key("accept", into: \.accept) { $0.list($1, of: "proofs: assertion, session") { $0 } }
            .means("The proofs of which a request needs one. Without it, [assertion].")
        Key("also", into: \.also) { $0.list($1, of: "names of `proofs`") { $0 } }
            .means("Tokens that each request needs beside its proof.")
        Key("body", into: \.body) { $0.body($1) }.means("What is done with content.")
        Key("on_error", into: \.onError) { $0.word($1) }
            .means("What happens when the store fails. Without it, refuse.")
        Key("unsupported", into: \.unsupported) { UnsupportedDraft($0, $1) }
            .means("What happens to requests with App-Attest-Unsupported. Without it, refuse.")
        Key("preflight", into: \.preflight) { $0.word($1) }
            .means("What happens to CORS preflights. Without it, judge.")
        Key("risk", into: \.risk) { RiskDraft($0, $1) }
            .means("What is done about Apple's risk metric.")
        Key("device", into: \.device) { $0.device($1) }
            .means("What Apple's two bits of the device may be.")
        Key("integrity", into: \.integrity) { IntegrityRuleDraft($0, $1) }
            .means("What Google Play has to say of an Android phone.")
        Key("fields", into: \.fields) { $0.fields($1) }
            .means("Other names of the fields that are read.")
        Key("next_challenge", into: \.nextChallenge) { $0.flag($1) }
            .means("Whether responses carry the next challenge.")
        Key("allow_encoded", into: \.allowEncoded) { reader, key in
            let names = PathConstructs.settingNames.map(\.name)
            return reader.list(key, of: names.joined(separator: ", "), words: names) { text in
                PathConstructs.settingNames.first { $0.name == text }?.construct.rawValue
            }
        }
        .means("What may be in a path that is otherwise refused.")
        Key("guard", into: \.fallback) { GuardRule($0, $1) }
            .means("When the rule falls back to observe by itself.")
    }

    /// Keys about verification. They mean nothing where nothing is verified.
    static let verifyingKeys = [
        "rollout", "apps", "sign", "headers", "challenge", "counter", "accept", "also", "body",
        "on_error", "unsupported", "preflight", "risk", "device", "integrity", "fields",
        "next_challenge", "guard",
    ]

    let reader: MappingReader
    private(set) var id: Located<String>?
    private(set) var match: Located<RouteMatch>?
    private(set) var origin: Located<String>?
    private(set) var mode: Located<Mode>?
    private(set) var rollout: Located<RolloutDraft>?
    private(set) var apps: [Located<String>]?
    private(set) var sign: Located<Sign>?
    private(set) var headers: [Located<String>]?
    private(set) var challenge: ChallengeDraft?
    private(set) var counter: Located<CounterRule>?
    /// The names of proofs in `accept` and `also`.
    private(set) var accept: [Located<String>]?
    private(set) var also: [Located<String>]?
    private(set) var body: Located<BodyDraft>?
    private(set) var onError: Located<DependencyErrorRule>?
    private(set) var unsupported: UnsupportedDraft?
    private(set) var preflight: Located<PreflightRule>?
    private(set) var device: Located<DeviceDraft>?
    private(set) var risk: RiskDraft?
    private(set) var integrity: IntegrityRuleDraft?
    private(set) var fallback: GuardRule?
    private(set) var fields: Located<FieldNames>?
    private(set) var nextChallenge: Located<Bool>?
    private(set) var allowEncoded: [Located<PathConstructs.RawValue>]?

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
        let names = Self.keys.names
        let keys = isDefault ? names.filter { $0 != "id" && $0 != "match" } : names
        guard let reader = MappingReader(node, keyPath, keys: keys, log: log) else { return nil }
        self.reader = reader
        Self.keys.read(reader, into: &self)
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

extension GuardRule {
    /// The contents of `guard`.
    private struct Draft: Declared {
        var refused: Located<Share>?
        var unit = Unit.installs
        var window = windowDefault
        var minimum = minimumDefault

        static let keys = Keys<Self> {
            Key("refused", into: \.refused) {
                $0.value($1, use: "a share above 0%, below 100%") { text in
                    Share(percent: text).flatMap { $0 > .none && $0 < .whole ? $0 : nil }
                }
            }
            .means("The rule falls back when more than this share is refused.")
            .mandatory("refused: the share of the installs, such as 2%")
            Key("of", \.unit, .word).means("What is counted.")
            Key("window", \.window, .time(.seconds(60) ... .seconds(3_600)))
                .means("The time in which it is counted.")
            Key("minimum", \.minimum, .count(10...1_000_000))
                .means("The least number for a decision.")
        }
    }

    /// Reads a rule's `guard`; `nil`, with a problem at the key's place, when it can't be read.
    init?(_ reader: MappingReader, _ key: String) {
        let stated = Stated(reader, key, over: Draft())
        guard let draft = stated?.value, let refused = draft.refused else { return nil }
        self.init(refused: refused.value)
        (window, minimum) = (draft.window, draft.minimum)
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
    private struct Draft: Declared {
        var max: Located<Int>?
        var unknown = RiskRule.Unknown.allow
        var action = RiskRule.Action.mark
        var daysMax = RiskRule.daysMaxDefault
        var rollout: RolloutDraft?

        static let keys = Keys<Self> {
            Key("max", into: \.max) { $0.integer($1, in: 0...RiskRule.limitMax) }
                .means("The highest metric that is within the limit.")
                .mandatory("max: the highest metric that is within the limit, such as 8")
            Key("unknown", \.unknown, .word)
                .means("Whether a metric that is not known counts as above the limit.")
            Key("action", \.action, .word)
                .means("What is done above the limit: a mark for the origin, or a refusal.")
            Key("max_age", \.daysMax, .days(1...400)).means("A metric that is older is unknown.")
            Key("rollout", into: \.rollout) { RolloutDraft($0, $1) }
                .means("The keys that action: refuse refuses. Without it, all.")
        }
    }

    /// The contents of `rollout`.
    private struct RolloutDraft {
        let schedule: Located<Rollout.Schedule>?
        let salt: String?

        static let keys = Keys<Self> {
            MappingReader.scheduleKeys()
            Key("salt").means("Keys that are early with one salt are not with another.")
        }

        init?(_ reader: MappingReader, _ key: String) {
            guard let inner = reader.inner(key, Self.keys) else { return nil }
            salt = inner.salt()
            schedule = inner.schedule().map {
                Located(value: $0, place: inner.place, keyPath: inner.keyPath)
            }
        }
    }

    let max: Located<Int>
    private let draft: Draft
    private let log: ProblemLog

    /// `nil`, with a problem at the key's place, when it can't be read.
    init?(_ reader: MappingReader, _ key: String) {
        let stated = Stated(reader, key, over: Draft())
        guard let draft = stated?.value, let max = draft.max else { return nil }
        (self.max, self.draft, log) = (max, draft, reader.log)
    }

    /// The rule's part. A rollout names the refused clients, so without `refuse` it is a mistake.
    ///
    /// - `id`: the rule's id. A key's place in this rollout is independent of its place in the
    ///   rule's own.
    func rule(ofRule id: String) -> RiskRule {
        let salt = draft.rollout?.salt ?? "\(id)/risk"
        var rule = RiskRule(max: max.value, salt: salt)
        (rule.unknown, rule.action, rule.daysMax) = (draft.unknown, draft.action, draft.daysMax)
        guard let rollout = draft.rollout?.schedule else { return rule }
        rule.rollout = Rollout(rollout.value, by: .key, salt: salt)
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
