/// The ways in which the same bytes arrive.
enum Pieces {
    /// Below this length every single cut is tried, above it a few that the bytes choose.
    private static let everyCutBelow = 64
    private static let cutsOfLong = 12

    /// Byte by byte, and cut in two.
    static func all(_ bytes: [UInt8]) -> [[[UInt8]]] {
        var all = [bytes.map { [$0] }]
        guard bytes.count > 1 else { return all }
        if bytes.count < everyCutBelow {
            for cut in 1..<bytes.count { all.append(two(bytes, cut)) }
        } else {
            // A hash in the manner of Fowler, Noll and Vo, so that an input always has its cuts.
            var hash: UInt64 = 0xCBF2_9CE4_8422_2325
            for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            for _ in 0..<cutsOfLong {
                hash = hash &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                all.append(two(bytes, 1 + Int((hash >> 33) % UInt64(bytes.count - 1))))
            }
        }
        return all
    }

    private static func two(_ bytes: [UInt8], _ cut: Int) -> [[UInt8]] {
        [Array(bytes[..<cut]), Array(bytes[cut...])]
    }
}
