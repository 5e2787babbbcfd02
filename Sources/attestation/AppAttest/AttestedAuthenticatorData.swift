internal import Cryptography
internal import StrictCBOR

/// The authenticator data of an attestation: 164 fixed bytes and what may follow.
///
///          0      37   head
///         37      16   AAGUID
///         53       2   length of the credential id, 32
///         55      32   credential id, which is the key id
///         87      77   COSE key {1: 2, 3: −7, −1: 1, −2: X, −3: Y}
///        164       …   nothing, or one CBOR map of extensions
struct AttestedAuthenticatorData {
    static let fixedBytes = 164

    let bytes: [UInt8]
    let head: AuthenticatorHead
    let aaguid: [UInt8]
    let credentialID: KeyID
    let coseKey: [UInt8]
    let extensions: AuthenticatorExtensions

    init(_ bytes: [UInt8]) throws(AttestationRefusal) {
        let span = bytes.span
        guard bytes.count >= Self.fixedBytes, let head = AuthenticatorHead(span, 0..<bytes.count)
        else {
            throw AttestationRefusal(.malformed, "authData has \(bytes.count) bytes")
        }
        // The offsets behind it hold for this length alone.
        guard bytes[53] == 0, bytes[54] == 32, let id = KeyID(bytes: bytes[55..<87]) else {
            throw AttestationRefusal(.malformed, "credential id is not of 32 bytes")
        }
        self.bytes = bytes
        self.head = head
        aaguid = Array(bytes[37..<53])
        credentialID = id
        coseKey = Array(bytes[87..<164])
        guard bytes.count > Self.fixedBytes else {
            extensions = .none
            return
        }
        do throws(CBORError) {
            extensions = try AuthenticatorExtensions(span, Self.fixedBytes..<bytes.count)
        } catch {
            throw AttestationRefusal(
                .malformed,
                "authData: \(error.reason.rawValue) at \(error.offset)"
            )
        }
    }

    /// The 77 bytes that a COSE key of this point has (RFC 9053 §7.1.1, canonical order).
    static func coseKey(of key: P256PublicKey) -> [UInt8] {
        let point = key.x963
        return [0xA5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20] + point[1..<33]
            + [0x22, 0x58, 0x20] + point[33..<65]
    }
}
