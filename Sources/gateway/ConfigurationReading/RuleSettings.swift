import Encodings
import HTTPWire
import RequestBinding
import Rules

/// A rule as the file states it, or the `default` section, which has no id and no match.
///
/// What it asks of a request is read into the rule's own demands. What names an app, an origin or a
/// proof, and what depends on other keys, is resolved by ``RuleValidation``.
struct RuleSettings: Declared {
    /// The forms of `sign`.
    enum Sign: Equatable {
        case parts(SignedParts)
        case content
        case challenge
    }

    /// What the file says of `unsupported`.
    enum Unsupported: Equatable {
        case rule(UnsupportedRule)
        /// The name of a proof.
        case require(String)
    }

    /// The contents of `challenge`. Each `nil` where the file says nothing.
    struct Challenge: Declared, Equatable {
        private(set) var need: ChallengeRule?
        private(set) var pointer: JSONPointer?

        init(need: ChallengeRule? = nil) { self.need = need }

        static let keys = Keys<Self> {
            Key("need", orNone: \.need, .word)
                .means("Whether a challenge is needed.", otherwise: "as sign has it")
            Key("json_pointer", orNone: \.pointer, jsonPointer)
                .means("Where the challenge is in the JSON content.", otherwise: "in its field")
        }

        private static let jsonPointer = ValueForm<JSONPointer>({ reader, key in
            reader.value(key, use: "a JSON pointer, such as /auth/challenge") { JSONPointer($0) }
        })
    }

    /// The contents of `body`.
    struct Body: Declared, Equatable {
        enum Digest: String, CaseIterable {
            case none, held, streamed
        }

        private(set) var digest = Digest.held
        private(set) var limit: ByteCount?
        private(set) var memory: ByteCount?

        init(digest: Digest = .held) { self.digest = digest }

        var hasBounds: Bool { limit != nil || memory != nil }

        static let keys = Keys<Self> {
            Key("digest", \.digest, .digest)
                .means("When content goes on: held (once all is verified), streamed or none.")
            Key("limit", orNone: \.limit, .size(ByteCount(1) ... .gibibytes(1 << 20)))
                .means("More content is answered 413.", otherwise: "10MiB, or 1GiB of streamed")
            Key("memory", orNone: \.memory, .size(ByteCount(0) ... .gibibytes(1)))
                .means("The rest of held content goes into a file.", otherwise: "256KiB")
        }
    }

    private(set) var id: String?
    private(set) var match: RouteMatch?
    private(set) var origin: String?
    private(set) var mode: Mode?
    private(set) var apps: [String]?
    private(set) var sign = Sign.parts(.all)
    private(set) var headers: [String] = []
    private(set) var challenge = Challenge()
    /// Names of proofs, as those of `also`.
    private(set) var accept = ["assertion"]
    private(set) var also: [String] = []
    private(set) var body = Body()
    private(set) var unsupported = Unsupported.rule(.refuse)
    private(set) var rate: RateSettings?
    private(set) var nextChallenge: Bool?
    /// Those of its parts that stand for themselves. Rollouts without a salt have an empty one.
    private(set) var demands = Rule.Demands(salt: "", mode: .off)

    package static let keys = Keys<Self> {
        Key("id", into: \.id) {
            $0.value($1, use: "1…64 letters, digits, dots, hyphens or underscores", name)?.value
        }
        .means("The rule's name in logs, metrics and explanations. Keep it.")
        Key("match", into: \.match) { $0.match($1) }
            .means("The requests of the rule. The first rule that matches decides.")
        Key("origin", orNone: \.origin, .text("the name of an origin") { $0 })
            .means("Where the requests go.", otherwise: "that of default")
        Key("mode", into: \.mode) { $0.word($1)?.value }
            .means("What is done: off and observe refuse nothing, enforce does, deny all.")
        Key("rollout", \.demands.rollout, .rollout)
            .means("The clients that enforce refuses.", otherwise: "all")
        Key("apps", orNone: \.apps, .texts("App IDs", text: \.self) { $0 })
            .means("The apps whose keys are admitted.", otherwise: "all production apps")
        Key("sign", \.sign, .sign).means("What the app signs.")
        Key("headers", \.headers, .texts("field names", text: \.self, TextForm.fieldName))
            .means("Fields that are signed too, in this order.")
        Key("challenge", \.challenge, .challenge)
            .means("Whether a challenge is needed.", otherwise: "required where sign has it")
        Key("counter", \.demands.counter, .counter).means("How counters prevent replays.")
        Key("accept", \.accept, proofs).means("The proofs of which a request needs one.")
        Key("also", \.also, .texts("names of `proofs`", text: \.self) { $0 })
            .means("Tokens that each request needs beside its proof.")
        Key("body", \.body, .body).means("What is done with content.")
        Key("on_error", \.demands.onError, .word).means("What happens when the store fails.")
        Key("unsupported", \.unsupported, .unsupported)
            .means("What happens to requests with App-Attest-Unsupported.")
        Key("preflight", \.demands.preflight, .word).means("What happens to CORS preflights.")
        Key("risk", orNone: \.demands.risk, .mapping { _ in RiskRule(max: 0, salt: "") })
            .means("What is done about Apple's risk metric.")
        Key("device", orNone: \.demands.device, .mapping { _ in DeviceRule(refused: []) })
            .means("What Apple's two bits of the device may be.")
        Key("integrity", orNone: \.demands.integrity, .mapping { _ in .unresolved })
            .means("What Google Play has to say of an Android phone.")
        Key("rate", orNone: \.rate, .mapping { _ in RateSettings() })
            .means("How often one device may make requests.")
        Key("fields", \.demands.fields, .mapping)
            .means("Other names of the fields that are read.")
        Key("next_challenge", orNone: \.nextChallenge, .flag)
            .means(
                "Whether responses carry the next challenge.",
                otherwise: "where a challenge is required"
            )
        Key("allow_encoded", \.demands.allowEncoded, .constructs)
            .means("What may be in a path that is otherwise refused.")
        Key("guard", orNone: \.demands.fallback, .mapping { _ in GuardRule(refused: .none) })
            .means("When the rule falls back to observe by itself.")
    }

    /// Those of `default`.
    private static var fallbackKeys: Keys<Self> {
        Keys { keys.all.filter { $0.name != "id" && $0.name != "match" } }
    }

    /// Keys about verification. They mean nothing where nothing is verified.
    static let verifyingKeys = keys.names.filter {
        !["id", "match", "origin", "mode", "allow_encoded"].contains($0)
    }

    private static let proofs = ValueForm<[String]>.texts(
        "proofs: assertion, session",
        text: \.self
    ) { $0 }

    /// Whether a request may prove itself by an assertion.
    var takesAssertions: Bool { accept.contains("assertion") }

    /// Reads a rule of the list, or `default`.
    static func read(
        _ node: SourceNode,
        at keyPath: String,
        isDefault: Bool = false,
        _ log: ProblemLog
    ) -> StatedRule? {
        let keys = isDefault ? fallbackKeys : keys
        return Stated(node, at: keyPath, over: RuleSettings(), keys: keys, log)
    }

    /// Reads the elements of a list of rules.
    ///
    /// A rule's key path in problems is its id, or its place among the others where it has none. A
    /// record has places alone.
    static func all(
        _ nodes: [SourceNode],
        at keyPath: String,
        _ log: ProblemLog
    ) -> [StatedRule] {
        nodes.enumerated().compactMap { index, node in
            var place = "\(keyPath)[\(index)]"
            if log.record == nil, case .mapping(let members) = node.content,
                case .text(let text)? = members.first(where: { $0.key == "id" })?.value.content,
                let id = name(text)
            {
                place = id
            }
            return read(node, at: place, log)
        }
    }

    /// `default` is the id of the default rule.
    private static func name(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy { $0.isAlphanumeric || ".-_".utf8.contains($0) }
        return isPlain && (1...64).contains(text.utf8.count) && text != "default" ? text : nil
    }
}

typealias StatedRule = Stated<RuleSettings>

extension StatedRule {
    /// An element of a list that the rule states, with its place.
    func located(_ key: String, at index: Int, _ text: String) -> Located<String> {
        reader.log.located("\(reader.path(key))[\(index)]", text)
    }

    /// The elements of a list that the rule states, with their places.
    func located(all key: String, _ path: KeyPath<RuleSettings, [String]>) -> [Located<String>] {
        value[keyPath: path].enumerated().map { located(key, at: $0, $1) }
    }
}

extension PathConstructs {
    /// The constructs that a rule may admit, in the words of `allow_encoded`.
    static let settingNames: [(name: String, construct: PathConstructs)] = [
        ("slash", .encodedSlash), ("backslash", .encodedBackslash), ("bare-backslash", .backslash),
        ("invalid-utf8", .invalidEncoding),
    ]

    /// The names of `allow_encoded`.
    var namesText: String {
        let names = Self.settingNames.filter { contains($0.construct) }.map(\.name)
        return names.isEmpty ? "none" : names.joined(separator: ", ")
    }
}
