/// A set of numbers: a hash table of blocks of 448 neighbours, one bit for each.
///
/// Clients spend their newest challenge, so spent numbers are neighbours: a block that is full
/// costs 1.2 bits a number. A number that is alone in its block costs the whole block.
///
/// The hash multiplies by a secret word, so that a client can't choose numbers whose
/// blocks collide.
struct SpentBlocks: Sendable {
    /// Numbers of one block.
    static let blockCount: UInt64 = 448
    /// Words of a block's bits.
    static let wordCount = 7
    /// Bytes of one block: a cache line.
    static let blockBytes = MemoryLayout<Block>.stride
    /// The most bytes of the table for each block in it: just grown, it is 3/8 full.
    static let bytesPerBlockMax = blockBytes * 8 / 3

    private struct Block {
        /// One more than the block's number; 0 in an empty place.
        var tag: UInt64 = 0
        var bits = InlineArray<7, UInt64>(repeating: 0)
    }

    private static let placesMin = 4
    /// Bytes of a table with one block.
    static let bytesMin = placesMin * blockBytes

    /// Open addressing with linear probing; a power of two, at most 3/4 full.
    private var places = [Block](repeating: Block(), count: placesMin)
    /// Blocks in the table.
    private(set) var count = 0
    private let multiplier: UInt64

    /// - `multiplier`: odd and random.
    init(multiplier: UInt64) { self.multiplier = multiplier }

    /// Bytes that the table takes.
    var bytes: Int { places.count * Self.blockBytes }

    /// Whether the number was added.
    func contains(_ number: UInt64) -> Bool {
        let (tag, word, bit) = Self.parts(number)
        let place = place(of: tag)
        return places[place].tag == tag && places[place].bits[word] & bit != 0
    }

    /// What came of adding a number.
    enum Addition { case added, present, noRoom }

    /// Adds a number.
    ///
    /// - `reserve`: called when a block more is needed, and answers whether there may be one.
    mutating func add(_ number: UInt64, reserve: () -> Bool) -> Addition {
        let (tag, word, bit) = Self.parts(number)
        var place = place(of: tag)
        if places[place].tag != tag {
            guard reserve() else { return .noRoom }
            if (count + 1) * 4 > places.count * 3 {
                grow()
                place = self.place(of: tag)
            }
            places[place].tag = tag
            count += 1
        }
        guard places[place].bits[word] & bit == 0 else { return .present }
        places[place].bits[word] |= bit
        return .added
    }

    /// Takes a number out again. Its block stays.
    mutating func remove(_ number: UInt64) {
        let (tag, word, bit) = Self.parts(number)
        let place = place(of: tag)
        if places[place].tag == tag { places[place].bits[word] &= ~bit }
    }

    // MARK: As bytes

    /// Calls with each block that is there: its tag and its bits.
    func forEachBlock(_ body: (UInt64, [UInt64]) -> Void) {
        for block in places where block.tag != 0 {
            body(block.tag, block.bits.indices.map { block.bits[$0] })
        }
    }

    /// Adds all bits of a block, as ``forEachBlock(_:)`` has given it.
    ///
    /// - Returns: whether it is a block more.
    mutating func merge(_ tag: UInt64, _ bits: [UInt64]) -> Bool {
        precondition(tag > 0 && bits.count == Self.wordCount, "SpentBlocks: no block")
        if (count + 1) * 4 > places.count * 3 { grow() }
        let place = place(of: tag)
        let isNew = places[place].tag == 0
        if isNew {
            places[place].tag = tag
            count += 1
        }
        for word in 0..<Self.wordCount { places[place].bits[word] |= bits[word] }
        return isNew
    }

    /// Where the block of this tag is, or the empty place where it would be.
    private func place(of tag: UInt64) -> Int {
        let mask = places.count - 1
        // The upper bits of the product depend on all bits of the tag.
        var place = Int((tag &* multiplier) >> 32) & mask
        // A table is never full, so that there is an empty place to stop at.
        while places[place].tag != tag, places[place].tag != 0 { place = (place + 1) & mask }
        return place
    }

    private mutating func grow() {
        var old = [Block](repeating: Block(), count: places.count * 2)
        swap(&old, &places)
        for block in old where block.tag != 0 { places[place(of: block.tag)] = block }
    }

    private static func parts(_ number: UInt64) -> (tag: UInt64, word: Int, bit: UInt64) {
        let inside = number % blockCount
        return (number / blockCount + 1, Int(inside / 64), 1 << (inside % 64))
    }
}
