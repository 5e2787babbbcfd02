import HTTPWire
import RequestBinding
package import Rules

// The options of a rule that are more than a word.

extension ValueForm where Value == RuleSettings.Sign {
    static var sign: ValueForm {
        ValueForm(
            { reader, key in
                guard let node = reader.node(key) else { return nil }
                if case .text = node.content {
                    let use = "content, challenge, or a list of method, target, body, challenge"
                    return reader.value(key, use: use, words: ["content", "challenge"]) { text in
                        ["content": .content, "challenge": .challenge][text]
                    }
                }
                let before = reader.log.problems.count
                let names = SignedParts.all.names
                let use = names.joined(separator: ", ")
                let list = reader.list(key, of: use, words: names) { text in
                    SignedParts.named.first { $0.name == text }?.part
                }
                guard let list, reader.log.problems.count == before else { return nil }
                return reader.located(key, .parts(SignedParts(list.map(\.value))))
            },
            text: { $0.text }
        )
    }
}

extension RuleSettings.Sign {
    /// As a file writes it.
    fileprivate var text: String {
        switch self {
        case .parts(let parts): parts.names.joined(separator: ", ")
        case .content: "content"
        case .challenge: "challenge"
        }
    }
}

extension ValueForm where Value == RuleSettings.Challenge {
    /// A word, or a mapping.
    static var challenge: ValueForm {
        ValueForm({ reader, key in
            if case .mapping? = reader.node(key)?.content {
                return Stated(reader, key, over: Value()).map { reader.located(key, $0.value) }
            }
            return reader.word(key, ChallengeRule.self)?.map { Value(need: $0) }
        })
    }
}

extension ValueForm where Value == CounterRule {
    private static var keys: Keys<CounterRule> {
        Keys {
            Key("window").means("How far below the highest counter a new one may be.")
                .mandatory("window: 1…64")
        }
    }

    static var counter: ValueForm {
        ValueForm(
            { reader, key in
                guard let node = reader.node(key) else { return nil }
                guard case .mapping = node.content else {
                    let use = "strict | { window: 1…64 }"
                    return reader.value(key, use: use, words: ["strict"]) { text in
                        text == "strict" ? .strict : nil
                    }
                }
                let window = reader.inner(key, keys)?
                    .integer("window", in: CounterRule.windowRange)
                return window.map { reader.located(key, .window($0.value)) }
            },
            text: { rule in
                switch rule {
                case .strict: "strict"
                case .window(let width): "{ window: \(width) }"
                }
            }
        )
    }
}

extension ValueForm where Value == RuleSettings.Body {
    /// A word, or a mapping.
    static var body: ValueForm {
        ValueForm({ reader, key in
            guard case .text? = reader.node(key)?.content else {
                return Stated(reader, key, over: Value()).map { reader.located(key, $0.value) }
            }
            return ValueForm<Value.Digest>.digest.located(reader, key)?.map { Value(digest: $0) }
        })
    }
}

extension ValueForm where Value == RuleSettings.Body.Digest {
    /// The treatment of content. A file from before 2026-11-22 may have `declared`, with which the
    /// origin got content before it was verified: its author has to choose.
    static var digest: ValueForm {
        ValueForm(
            { reader, key in
                guard case .text("declared") = reader.node(key)?.content else {
                    return reader.word(key)
                }
                reader.error(
                    key,
                    found: "declared, which is no longer offered",
                    use: """
                        held (the origin sees nothing before all content is verified) or streamed \
                        (as declared was: content goes to the origin while it arrives, and the \
                        connection is reset when it is not what was signed; only for origins that \
                        discard incomplete requests)
                        """
                )
                // Other problems of the section are reported for the probable meaning.
                return reader.located(key, .streamed)
            },
            text: { $0.rawValue }
        )
    }
}

extension ValueForm where Value == RuleSettings.Unsupported {
    private static var keys: Keys<RuleSettings> {
        Keys {
            Key("require").means("The token that such a request needs.")
                .mandatory("require: the name of a proof")
        }
    }

    /// A word, or the name of a proof in a mapping.
    static var unsupported: ValueForm {
        ValueForm(
            { reader, key in
                guard let node = reader.node(key) else { return nil }
                guard case .mapping = node.content else {
                    let words = ["refuse", "forward"]
                    let use = words.joined(separator: " | ")
                    return reader.value(key, use: use, words: words) { text in
                        ["refuse": .rule(.refuse), "forward": .rule(.forward)][text]
                    }
                }
                let name = reader.inner(key, keys)?
                    .value("require", use: "the name of a proof") { $0 }
                return name?.map { .require($0) }
            },
            text: { unsupported in
                switch unsupported {
                case .rule(.forward): "forward"
                case .rule: "refuse"
                case .require(let name): "{ require: \(name) }"
                }
            }
        )
    }
}

extension ValueForm where Value == PathConstructs {
    /// The words of `allow_encoded`.
    static var constructs: ValueForm {
        ValueForm(
            { reader, key in
                let names = PathConstructs.settingNames.map(\.name)
                let use = names.joined(separator: ", ")
                let list = reader.list(key, of: use, words: names) { text in
                    PathConstructs.settingNames.first { $0.name == text }?.construct.rawValue
                }
                return list.map { list in
                    let constructs = list.map { PathConstructs(rawValue: $0.value) }
                    return reader.located(key, PathConstructs(constructs))
                }
            },
            text: { $0.namesText }
        )
    }
}

/// Names of the fields to read.
extension FieldNames: Declared {
    package static let keys = Keys<Self> {
        Key("key_id", \.keyID, name).means("The field of the key id.")
        Key("assertion", \.assertion, name).means("The field of the assertion.")
        Key("challenge", \.challenge, name).means("The field of the challenge.")
        Key("unsupported", \.unsupported, name)
            .means("The field by which an app says that it has no App Attest.")
    }.checked { reader, names in
        guard Set(names.all).count < names.all.count else { return }
        reader.log.error(reader, found: "one name for two fields", use: "four different names")
        names = .standard
    }

    private static let name = ValueForm<[UInt8]>(
        { reader, key in
            let use = "a field name that is not one of HTTP's or the gateway's own"
            return reader.value(key, use: use) { text -> [UInt8]? in
                guard let name = TextForm.fieldName(text).map({ Array($0.utf8) }),
                    !reserved.contains(FieldKind(name: name))
                else { return nil }
                return name
            }
        },
        text: { String(decoding: $0, as: UTF8.self) }
    )

    /// Fields that frame the message, and those that the gateway writes itself.
    private static let reserved = FieldKindSet.neverAsSent.subtracting(.proof).union(
        FieldKindSet([.host, .date, .contentDigest, .contentType, .contentEncoding])
    )
}
