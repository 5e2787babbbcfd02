import Cryptography
import Encodings
import HTTPWire
import RequestBinding
import Rules

// The options of a rule that are more than a word.
extension MappingReader {
    func match(_ key: String) -> Located<RouteMatch>? {
        guard let inner = inner(key, RouteMatch.keys) else { return nil }
        guard inner.has("host") || inner.has("method") || inner.has("path") else {
            log.error(inner, found: "nothing to match", use: "host, method or path")
            return nil
        }
        let host = inner.value(
            "host",
            use: "api.example.com, \"*.example.com\" or \"*\", without a port"
        ) {
            HostPattern(text: $0)
        }
        let methods = inner.methods("method")
        let pattern = inner.pattern("path")
        // An unreadable part must not make the rule match more than it says.
        if inner.has("host"), host == nil { return nil }
        if inner.has("method"), methods == nil { return nil }
        if inner.has("path"), pattern == nil { return nil }
        let match = RouteMatch(host: host?.value ?? .any, methods: methods, path: pattern ?? .all)
        return Located(value: match, place: inner.place, keyPath: inner.keyPath)
    }

    /// Method names; a single one may stand without brackets.
    private func methods(_ key: String) -> [String]? {
        let use = "method names in upper case, such as [GET, POST]"
        guard !namesAllMethods(key, use: use) else { return nil }
        let known = RegisteredMethod.names.filter { !["CONNECT", "TRACE", "PRI"].contains($0) }
        func method(_ text: String) -> String? {
            guard TextForm.fieldName(text) != nil, !["CONNECT", "TRACE"].contains(text) else {
                return nil  // The gateway answers these itself.
            }
            return text == text.uppercased() && text.utf8.count <= 32 ? text : nil
        }
        if case .text = node(key)?.content {
            return value(key, use: use, words: known, method).map { [$0.value] }
        }
        let before = log.problems.count
        let methods = list(key, of: use, words: known, method)
        return log.problems.count == before ? methods?.map(\.value) : nil
    }

    /// Whether the list has a word that elsewhere means all methods, which is a problem: here it
    /// would be one method, which no client sends.
    private func namesAllMethods(_ key: String, use: String) -> Bool {
        guard let node = node(key) else { return false }
        let nodes: [(SourceNode, String)]
        switch node.content {
        case .list(let list): nodes = list.enumerated().map { ($1, "\(path(key))[\($0)]") }
        case .text, .nothing, .mapping: nodes = [(node, path(key))]
        }
        for (node, keyPath) in nodes {
            guard case .text(let text) = node.content,
                ["*", "ANY", "ALL"].contains(text.uppercased())
            else { continue }
            let use = "no method, which stands for any, or \(use)"
            log.error(node.place, keyPath, found: node.found, use: use)
            return true
        }
        return false
    }

    private func pattern(_ key: String) -> PathPattern? {
        guard let node = node(key) else { return nil }
        let example = "/v1/orders, /v1/users/* or /v1/files/**"
        log.record?.text(path(key), use: example)
        guard case .text(let text) = node.content else {
            log.error(node.place, path(key), found: node.found, use: example)
            return nil
        }
        do throws(PathPattern.Fault) {
            return try PathPattern(text)
        } catch {
            let use =
                switch error {
                case .noLeadingSlash: "a path that begins with a slash: \(example)"
                case .placeholder(let meant):
                    "* for a segment and ** for the rest (did you mean \(meant)?)"
                case .partialWildcard: "* only as a whole segment: \(example)"
                case .restBeforeEnd: "** only at the end: \(example)"
                case .character: "a path without query, fragment, space, %2A and %3B, in US-ASCII"
                case .emptySegment: "a path without empty segments: no // and no /;"
                case .construct: "a path without dot segments, backslashes, %2F, %5C and %00"
                case .tooManySegments: "at most \(PathPattern.segmentsMax) segments"
                }
            log.error(node.place, path(key), found: node.found, use: use)
            return nil
        }
    }

    func sign(_ key: String) -> Located<RuleDraft.Sign>? {
        guard let node = node(key) else { return nil }
        let use = "content, challenge, or a list of method, target, body, challenge"
        if case .text = node.content {
            return value(key, use: use, words: ["content", "challenge"]) { text in
                ["content": .content, "challenge": .challenge][text]
            }
        }
        let before = log.problems.count
        let names = SignedParts.all.names
        let list = list(key, of: names.joined(separator: ", "), words: names) { text in
            SignedParts.named.first { $0.name == text }?.part
        }
        guard let list, log.problems.count == before else { return nil }
        let all = list.reduce(into: SignedParts()) { $0.insert($1.value) }
        return Located(value: .parts(all), place: node.place, keyPath: path(key))
    }

    func rollout(_ key: String) -> Located<RuleDraft.RolloutDraft>? {
        guard let inner = inner(key, RuleDraft.RolloutDraft.keys) else { return nil }
        let subject = inner.word("by", Rollout.Subject.self)?.value ?? .key
        let salt = inner.salt()
        guard let schedule = inner.schedule() else { return nil }
        let draft = RuleDraft.RolloutDraft(schedule: schedule, subject: subject, salt: salt)
        return Located(value: draft, place: inner.place, keyPath: inner.keyPath)
    }

    /// The key `salt` of a rollout.
    func salt() -> String? {
        value("salt", use: "a text of at most 64 bytes") { text in
            (1...64).contains(text.utf8.count) ? text : nil
        }?.value
    }

    /// The keys of a share: fixed or growing.
    ///
    /// - path: the value that they make together, for a section that compares it.
    static func scheduleKeys<Section>(
        _ path: (any KeyPath<Section, Rollout.Schedule> & Sendable)? = nil
    ) -> [Key<Section>] {
        let name = "percent"
        return [
            (path.map { Key(name, later: $0, .whole) } ?? Key(name))
                .means("A fixed share."),
            Key("from").means("When a share begins to grow, with start at that time."),
            Key("to").means("When it has grown to end."),
            Key("start").means("The share at first."),
            Key("end").means("The share at last."),
        ]
    }

    private static let datedKeys = ["from", "to", "start", "end"]

    /// Whether there is a key of a share.
    var hasSchedule: Bool { has("percent") || Self.datedKeys.contains(where: has) }

    /// The share by the mapping's keys.
    func schedule() -> Rollout.Schedule? {
        func share(_ key: String) -> Located<Share>? {
            value(key, use: "a percentage, 0%…100%, with at most four decimals") {
                Share(percent: $0)
            }
        }
        func time(_ key: String) -> Located<UnixTime>? {
            value(key, use: "a date (2026-12-01) or a UTC time (2026-12-01T10:00:00Z)") { text in
                let text = text.utf8.count == 10 ? text + "T00:00:00Z" : text
                return UnixTime(iso8601: text).flatMap { $0.seconds >= 0 ? $0 : nil }
            }
        }
        let dated = Self.datedKeys
        guard !has("percent") else {
            for key in dated where has(key) {
                error(
                    key,
                    found: "it beside percent",
                    use: "either percent or all of \(dated.joined(separator: ", "))"
                )
            }
            return share("percent").map { .fixed($0.value) }
        }
        guard dated.contains(where: has) else {
            log.error(
                place,
                keyPath,
                found: "no share",
                use: "percent, or all of \(dated.joined(separator: ", "))"
            )
            return nil
        }
        for key in dated { require(key, use: "it too: a schedule has from, to, start and end") }
        // All four are read before a missing one is reported: each may have a problem.
        let (from, to) = (time("from"), time("to"))
        let (start, end) = (share("start"), share("end"))
        guard let from, let to, let start, let end else { return nil }
        guard from.value < to.value else {
            log.error(to, found: "an end that is not after its start", use: "a later date")
            return nil
        }
        guard start.value <= end.value else {
            log.error(
                end,
                found: "\(end.value.text) after \(start.value.text)",
                use: "a share that is not below start: a rollout only grows"
            )
            return nil
        }
        return .growing(from: from.value, to: to.value, start: start.value, end: end.value)
    }

    func challenge(_ key: String) -> RuleDraft.ChallengeDraft? {
        var draft = RuleDraft.ChallengeDraft()
        guard case .mapping? = node(key)?.content else {
            draft.need = word(key)
            return draft.need == nil ? nil : draft
        }
        return Stated(self, key, over: draft)?.value
    }

    func counter(_ key: String) -> Located<CounterRule>? {
        guard let node = node(key) else { return nil }
        guard case .mapping = node.content else {
            return value(key, use: "strict | { window: 1…64 }", words: ["strict"]) { text in
                text == "strict" ? .strict : nil
            }
        }
        guard let inner = inner(key, CounterRule.keys) else { return nil }
        guard let window = inner.integer("window", in: CounterRule.windowRange) else { return nil }
        return Located(value: .window(window.value), place: node.place, keyPath: path(key))
    }

    func body(_ key: String) -> Located<RuleDraft.BodyDraft>? {
        guard let node = node(key) else { return nil }
        var draft = RuleDraft.BodyDraft()
        if case .text = node.content {
            guard let digest = digest(key) else { return nil }
            draft.digest = digest
            return Located(value: draft, place: node.place, keyPath: path(key))
        }
        return Stated(self, key, over: draft).map {
            Located(value: $0.value, place: node.place, keyPath: path(key))
        }
    }

    /// The treatment of content. A file from before 2026-11-22 may have `declared`, with which the
    /// origin got content before it was verified: its author has to choose.
    func digest(_ key: String) -> Located<RuleDraft.BodyDraft.Digest>? {
        guard case .text("declared") = node(key)?.content else { return word(key) }
        error(
            key,
            found: "declared, which is no longer offered",
            use: """
                held (the origin sees nothing before all content is verified) or streamed (as \
                declared was: content goes to the origin while it arrives, and the connection is \
                reset when it is not what was signed; only for origins that discard incomplete \
                requests)
                """
        )
        // Other problems of the section are reported for the probable meaning.
        return Located(value: .streamed, place: place(of: key), keyPath: path(key))
    }

    func fields(_ key: String) -> Located<FieldNames>? {
        let stated = Stated(self, key, over: FieldNames.standard)
        guard let stated else { return nil }
        guard Set(stated.value.all).count == stated.value.all.count else {
            log.error(stated, found: "one name for two fields", use: "four different names")
            return nil
        }
        return Located(value: stated.value, place: stated.place, keyPath: stated.keyPath)
    }
}

extension RouteMatch {
    fileprivate static let keys = Keys<Self> {
        Key("host").means("A host, all hosts below a domain, or any.")
        Key("method").means("Methods. GET includes HEAD.")
        Key("path").means("A path: * stands for a segment, ** for the rest.")
    }
}

extension CounterRule {
    fileprivate static let keys = Keys<Self> {
        Key("window").means("How far below the highest counter a new one may be.")
            .mandatory("window: 1…64")
    }
}

/// Names of the fields to read.
extension FieldNames: Declared {
    static let keys = Keys<Self> {
        Key("key_id", \.keyID, name).means("The field of the key id.")
        Key("assertion", \.assertion, name).means("The field of the assertion.")
        Key("challenge", \.challenge, name).means("The field of the challenge.")
        Key("unsupported", \.unsupported, name)
            .means("The field by which an app says that it has no App Attest.")
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
// A rule's demands on the device's bits.
extension MappingReader {
    func device(_ key: String) -> Located<RuleDraft.DeviceDraft>? {
        let stated = Stated(self, key, over: RuleDraft.DeviceDraft())
        return stated.map { Located(value: $0.value, place: $0.place, keyPath: $0.keyPath) }
    }

    /// The bits that refuse: a condition, or a list of conditions of which one is enough.
    func refusedBits(_ key: String) -> Set<DeviceBits>? {
        guard let node = node(key) else { return nil }
        let before = log.problems.count
        var refused: Set<DeviceBits> = []
        if case .list = node.content {
            for (node, keyPath) in list(key, of: "conditions: { bit0: true, bit1: false }") ?? [] {
                refused.formUnion(bits(of: node, keyPath))
            }
        } else {
            refused = bits(of: node, path(key))
        }
        guard log.problems.count == before else { return nil }
        guard refused.count < DeviceBits.all.count else {
            log.error(
                node.place,
                path(key),
                found: "every device",
                use: "bits that some devices don't have; or mode: deny"
            )
            return nil
        }
        return refused
    }

    /// The bits that meet all parts of a condition.
    private func bits(of node: SourceNode, _ keyPath: String) -> Set<DeviceBits> {
        let keys = DeviceBits.keys
        guard let inner = MappingReader(node, keyPath, keys: keys.names, log: log) else {
            return []
        }
        keys.note(inner)
        guard inner.has("bit0") || inner.has("bit1") else {
            log.error(node.place, keyPath, found: "no bit", use: "bit0: true | false, or bit1")
            return []
        }
        let (bit0, bit1) = (inner.flag("bit0")?.value, inner.flag("bit1")?.value)
        return Set(
            DeviceBits.all.filter { bits in
                (bit0 == nil || bits.bit0 == bit0) && (bit1 == nil || bits.bit1 == bit1)
            }
        )
    }
}

extension DeviceBits {
    fileprivate static let keys = Keys<Self> {
        Key("bit0").means("Whether the first bit is set.")
        Key("bit1").means("Whether the second bit is set.")
    }
}
