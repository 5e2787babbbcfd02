import Rules

// A rule's demands on the device's bits.
extension MappingReader {
    /// The time that a request may wait for Apple.
    private static let timeouts = Duration.milliseconds(100)...Duration.seconds(30)

    func device(_ key: String) -> Located<RuleDraft.DeviceDraft>? {
        let keys = ["refuse_if", "on_error", "timeout"]
        guard let inner = inner(key, keys: keys) else { return nil }
        inner.require("refuse_if", use: "refuse_if: { bit0: true }")
        var draft = RuleDraft.DeviceDraft()
        draft.refused = inner.refusedBits("refuse_if")
        draft.onError = inner.word("on_error")
        draft.timeout = inner.duration("timeout", in: Self.timeouts)
        return Located(value: draft, place: inner.place, keyPath: inner.keyPath)
    }

    /// The bits that refuse: a condition, or a list of conditions of which one is enough.
    private func refusedBits(_ key: String) -> Set<DeviceBits>? {
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
        guard let inner = MappingReader(node, keyPath, keys: ["bit0", "bit1"], log: log) else {
            return []
        }
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
