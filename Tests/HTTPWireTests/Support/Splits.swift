/// The ways in which bytes arrive.
enum Splits {
    static func whole(_ octets: [UInt8]) -> [[UInt8]] { [octets] }

    static func bytes(_ octets: [UInt8]) -> [[UInt8]] { octets.map { [$0] } }

    /// Cut before and after each CR, LF, `;` and `"`.
    static func delimiters(_ octets: [UInt8]) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var piece: [UInt8] = []
        for octet in octets {
            if [0x0D, 0x0A, 0x3B, 0x22].contains(octet) {
                if !piece.isEmpty { pieces.append(piece) }
                pieces.append([octet])
                piece = []
            } else {
                piece.append(octet)
            }
        }
        if !piece.isEmpty { pieces.append(piece) }
        return pieces
    }

    /// Whole, byte by byte, at delimiters, and, for short input, in two pieces at every cut.
    static func all(_ octets: [UInt8], cutsBelow limit: Int = 300) -> [[[UInt8]]] {
        var splits = [whole(octets), bytes(octets), delimiters(octets)]
        if octets.count < limit {
            for cut in octets.indices.dropFirst() {
                splits.append([Array(octets[..<cut]), Array(octets[cut...])])
            }
        }
        return splits
    }
}
