import Cryptography

/// A secret that operators show where the address alone says nothing of who calls.
package struct OperatorToken: Sendable {
    /// How many characters it has. 32 random hexadecimal digits can't be guessed.
    package static let lengths = 32...256

    /// Of the token, so that a comparison tells nothing by its time.
    private let digest: SHA256Digest
    /// What a caller sends in `Authorization`.
    package let authorization: String

    /// Reads a file: one line of visible ASCII. `nil` for anything else.
    package init?(file: [UInt8]) {
        var text = file[...]
        if text.last == UInt8(ascii: "\n") { text.removeLast() }
        guard Self.lengths.contains(text.count),
            text.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        digest = SHA256.digest(of: Array(text))
        authorization = "Bearer " + String(decoding: text, as: UTF8.self)
    }

    /// Whether these bytes are the token.
    package func isEqual(_ octets: Span<UInt8>) -> Bool {
        SHA256.digest(octets).isEqual(constantTime: digest)
    }
}

/// Knows the token of operators, which a reload may change.
package protocol OperatorTokenSource: Sendable {
    /// `nil` where nobody has one.
    var operatorToken: OperatorToken? { get }
}
