import Rules

// What a rule asks beside the signature. Each is read into the type that judges requests.

extension RiskRule: Declared {
    static let keys = Keys<Self> {
        Key("max", \.max, .count(0...limitMax))
            .means("The highest metric that is within the limit.")
            .mandatory("max: the highest metric that is within the limit, such as 8")
        Key("unknown", \.unknown, .word)
            .means("Whether a metric that is not known counts as above the limit.")
        Key("action", \.action, .word)
            .means("What is done above the limit: a mark for the origin, or a refusal.")
        Key("max_age", \.daysMax, .days(1...400)).means("A metric that is older is unknown.")
        Key("rollout", \.rollout, .rolloutOfRisk)
            .means("The keys that action: refuse refuses.", otherwise: "all")
    }.checked { reader, risk in
        // A rollout names the refused clients, so without `refuse` it is a mistake.
        guard reader.has("rollout"), risk.action == .mark else { return }
        reader.error(
            "rollout",
            found: "it with action: mark, where it has no effect",
            use: "action: refuse, or no rollout"
        )
    }
}

extension GuardRule: Declared {
    static let keys = Keys<Self> {
        Key("refused", \.refused, share)
            .means("The rule falls back when more than this share is refused.")
            .mandatory("refused: the share of the installs, such as 2%")
        Key("of", \.unit, .word).means("What is counted.")
        Key("window", \.window, .time(.seconds(60) ... .seconds(3_600)))
            .means("The time in which it is counted.")
        Key("minimum", \.minimum, .count(10...1_000_000))
            .means("The least number for a decision.")
    }

    private static let share = ValueForm<Share>(
        { reader, key in
            reader.value(key, use: "a share above 0%, below 100%") { text in
                Share(percent: text).flatMap { $0 > .none && $0 < .whole ? $0 : nil }
            }
        },
        text: { $0.text }
    )

    /// `falls back to observe when more than 2% of at least 100 installs are refused in 5m`
    package var text: String {
        """
        falls back to observe when more than \(refused.text) of at least \(minimum) installs are \
        refused in \(window.settingText)
        """
    }
}

extension DeviceRule: Declared {
    static let keys = Keys<Self> {
        Key("refuse_if", \.refused, bits)
            .means("Bits of which all must be so, or a list of such conditions.")
            .mandatory("refuse_if: { bit0: true }")
        Key("on_error", \.onError, .word).means("What happens when the bits are not known.")
        Key("timeout", \.timeout, .time(.milliseconds(100) ... .seconds(30)))
            .means("How long the request waits for Apple.")
    }

    private static let bits = ValueForm<Set<DeviceBits>>(
        { $0.refusedBits($1) },
        text: { bits in bits.map(\.text).sorted().joined(separator: " or ") }
    )
}

extension MappingReader {
    /// The bits that refuse: a condition, or a list of conditions of which one is enough.
    fileprivate func refusedBits(_ key: String) -> Located<Set<DeviceBits>>? {
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
        return located(key, refused)
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
