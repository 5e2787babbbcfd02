import Cryptography

/// A request as the origin saw it.
struct Sighting: Sendable {
    let head: MessageReader.Head
    /// Bytes of content.
    let contentCount: Int
    /// SHA-256 of what came of the content.
    let digest: SHA256Digest
    /// Whether its end came. This origin acts on complete requests only; many others don't.
    let isComplete: Bool
    /// Whether a reset came in place of it.
    let wasReset: Bool

    /// Method and target.
    var requestLine: String {
        head.line.split(separator: " ").prefix(2).joined(separator: " ")
    }

    /// A field's value.
    subscript(name: String) -> String? { head[name] }
}
