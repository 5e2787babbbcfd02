package import AppAttest
import Encodings
package import Signatures

/// A member of a vector can't be read: the vector is broken, and the test stops.
package struct BrokenVector: Error {
    package init() {}
}

/// The bytes that a member holds in base64.
package func bytes(_ base64: String) throws -> [UInt8] {
    guard let bytes = Base64.decode(base64) else { throw BrokenVector() }
    return bytes
}

/// The moment that a member holds as ISO 8601 writes it.
package func moment(_ text: String) throws -> UnixTime {
    guard let time = UnixTime(iso8601: text) else { throw BrokenVector() }
    return time
}

/// The key id that a member holds in base64.
package func keyID(_ base64: String) throws -> KeyID {
    guard let id = KeyID(base64: base64) else { throw BrokenVector() }
    return id
}

/// The public key that a member holds in base64.
package func publicKey(_ base64: String) throws -> P256PublicKey {
    guard let key = P256PublicKey(x963: try bytes(base64)) else { throw BrokenVector() }
    return key
}
