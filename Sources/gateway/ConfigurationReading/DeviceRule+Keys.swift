package import Rules

extension DeviceRule: Declared {
    package static let keys = Keys<Self> {
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
