internal import Cryptography
internal import Encodings

/// What takes the place of an absent file's content in a configuration that is only checked: a key
/// that was just made, or a text that protects nothing. No gateway is started with it. Those of a
/// party's files stand in the party's folder.
package struct StandIn: Sendable {
    private let make: @Sendable (_ path: String) -> [UInt8]?

    package init(_ make: @escaping @Sendable (_ path: String) -> [UInt8]?) { self.make = make }

    /// The content of the file at this path; `nil` where none can be made.
    package func bytes(for path: String) -> [UInt8]? { make(path) }

    /// A private key on P-256, in PEM.
    package static let privateKey = StandIn { _ in
        Array(ECPrivateKey(generating: .p256).pem.utf8)
    }

    /// One line, another one for each path.
    package static let line = StandIn { path in
        Array(Hex.text(SHA256.digest(of: Array(path.utf8)).array).utf8)
    }

    /// A key of 32 bytes, in base64.
    package static let symmetricKey = StandIn { path in
        Base64.encode(SHA256.digest(of: Array(path.utf8)).array)
    }
}
