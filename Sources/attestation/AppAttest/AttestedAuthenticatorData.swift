internal import Cryptography
internal import StrictCBOR

/// The authenticator data of an attestation: 164 fixed octets and what may follow.
///
///          0      37   head
///         37      16   AAGUID
///         53       2   length of the credential id, 32
///         55      32   credential id, which is the key id
///         87      77   COSE key {1: 2, 3: −7, −1: 1, −2: X, −3: Y}
///        164       …   nothing, or one CBOR map of extensions
struct AttestedAuthenticatorData {
    static let fixedOctets = 164

    let octets: [UInt8]
    let head: AuthenticatorHead
    let aaguid: [UInt8]
    let credentialID: KeyID
    let coseKey: [UInt8]
    let extensions: AuthenticatorExtensions

    init(_ octets: [UInt8]) throws(AttestationRefusal) {
        let span = octets.span
        guard octets.count >= Self.fixedOctets, let head = AuthenticatorHead(span, 0..<octets.count)
        else {
            throw AttestationRefusal(.malformed, "authData has \(octets.count) octets")
        }
        // The other offsets stand only with this length.
        guard octets[53] == 0, octets[54] == 32, let id = KeyID(octets: octets[55..<87]) else {
            throw AttestationRefusal(.malformed, "credential id is not of 32 octets")
        }
        self.octets = octets
        self.head = head
        aaguid = Array(octets[37..<53])
        credentialID = id
        coseKey = Array(octets[87..<164])
        guard octets.count > Self.fixedOctets else {
            extensions = .none
            return
        }
        do throws(CBORError) {
            extensions = try AuthenticatorExtensions(span, Self.fixedOctets..<octets.count)
        } catch {
            throw AttestationRefusal(
                .malformed,
                "authData: \(error.reason.rawValue) at \(error.offset)"
            )
        }
    }

    /// The 77 octets that a COSE key of this point has (RFC 9053 §7.1.1, canonical order).
    static func coseKey(of key: P256.PublicKey) -> [UInt8] {
        let point = key.x963
        return [0xA5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20] + point[1..<33]
            + [0x22, 0x58, 0x20] + point[33..<65]
    }
}
