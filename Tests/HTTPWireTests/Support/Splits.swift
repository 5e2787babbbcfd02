/// The ways in which bytes arrive.
enum Splits {
    static func whole(_ bytes: [UInt8]) -> [[UInt8]] { [bytes] }

    static func singles(_ bytes: [UInt8]) -> [[UInt8]] { bytes.map { [$0] } }

    /// Cut before and after each CR, LF, `;` and `"`.
    static func delimiters(_ bytes: [UInt8]) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var piece: [UInt8] = []
        for byte in bytes {
            if [0x0D, 0x0A, 0x3B, 0x22].contains(byte) {
                if !piece.isEmpty { pieces.append(piece) }
                pieces.append([byte])
                piece = []
            } else {
                piece.append(byte)
            }
        }
        if !piece.isEmpty { pieces.append(piece) }
        return pieces
    }

    /// Whole, byte by byte, at delimiters, and, for short input, in two pieces at every cut.
    static func all(_ bytes: [UInt8], cutsBelow limit: Int = 300) -> [[[UInt8]]] {
        var splits = [whole(bytes), singles(bytes), delimiters(bytes)]
        if bytes.count < limit {
            for cut in bytes.indices.dropFirst() {
                splits.append([Array(bytes[..<cut]), Array(bytes[cut...])])
            }
        }
        return splits
    }
}
