import Foundation

/// Pieces of content, handed out one by one.
actor PieceList {
    private var pieces: [Data]

    init(_ pieces: [Data]) { self.pieces = pieces }

    func next() -> Data? { pieces.isEmpty ? nil : pieces.removeFirst() }
}
