/// How much one decoding may take. It is consumed by it, so that a small object cannot claim much
/// work.
public struct CBORBudget: Sendable {
    /// The most bytes of the whole object.
    public let octetsMax: Int
    /// Arrays, maps and tags that may still be entered inside one another.
    public private(set) var depthLeft: Int
    /// Items, keys and values counted apart, that may still be read.
    public private(set) var itemsLeft: Int

    /// A budget of so many bytes, levels and items.
    public init(octetsMax: Int, depthMax: Int, itemsMax: Int) {
        self.octetsMax = octetsMax
        depthLeft = depthMax
        itemsLeft = itemsMax
    }

    mutating func takeItem(at offset: Int) throws(CBORError) {
        guard itemsLeft > 0 else { throw CBORError(.tooManyItems, at: offset) }
        itemsLeft -= 1
    }

    mutating func enter(at offset: Int) throws(CBORError) {
        guard depthLeft > 0 else { throw CBORError(.tooDeep, at: offset) }
        depthLeft -= 1
    }

    mutating func leave() {
        depthLeft += 1
    }
}
