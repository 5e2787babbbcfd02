public import Cryptography
internal import StrictCBOR

/// An attestation object as a client sends it, read and not judged.
///
///     {"fmt": "apple-appattest",
///      "attStmt": {"x5c": [leaf, intermediate], "receipt": bytes},
///      "authData": bytes}
///
/// Exactly these keys, in any order, strict CBOR, exactly two certificates.
public struct UnverifiedAttestation: Sendable {
    /// The longest object that is read. 1,969…5,921 bytes have been seen.
    public static let bytesMax = 16 * 1024

    /// The certificate of the key.
    public let leaf: X509Certificate
    /// The certificate of the authority that signed the leaf.
    public let intermediate: X509Certificate
    /// The receipt, for ``UnverifiedReceipt``. It is not covered by the attestation.
    public let receipt: [UInt8]
    let authenticatorData: AttestedAuthenticatorData

    /// Reads an object. Throws `.malformed`.
    public init(bytes: [UInt8]) throws(AttestationRefusal) {
        let object: CBORValue
        do throws(CBORError) {
            object = try CBORValue(
                decoding: bytes.span,
                budget: CBORBudget(octetsMax: Self.bytesMax, depthMax: 4, itemsMax: 16)
            )
        } catch {
            throw AttestationRefusal(.malformed, "\(error.reason.rawValue) at \(error.offset)")
        }
        guard case .map(let pairs) = object, pairs.count == 3,
            object["fmt"] == .text("apple-appattest"), let statement = object["attStmt"],
            case .bytes(let authData) = object["authData"]
        else { throw AttestationRefusal(.malformed, "not fmt, attStmt, authData") }
        guard case .map(let parts) = statement, parts.count == 2,
            case .array(let x5c) = statement["x5c"], case .bytes(let receipt) = statement["receipt"]
        else { throw AttestationRefusal(.malformed, "attStmt is not x5c, receipt") }
        guard x5c.count == 2, case .bytes(let leaf) = x5c[0], case .bytes(let intermediate) = x5c[1]
        else { throw AttestationRefusal(.malformed, "x5c is not two certificates") }
        do throws(X509CertificateError) {
            self.leaf = try X509Certificate(der: leaf)
            self.intermediate = try X509Certificate(der: intermediate)
        } catch {
            throw AttestationRefusal(.malformed, "x5c: \(error.detail)")
        }
        self.receipt = receipt
        authenticatorData = try AttestedAuthenticatorData(authData)
    }

    /// Reads an object, from `Data` or any other bytes. Throws `.malformed`.
    public init(bytes: some Sequence<UInt8>) throws(AttestationRefusal) {
        try self.init(bytes: Array(bytes))
    }

    /// Which app the object claims to come from, to look up what is expected of the app.
    public var appIDHash: AppIDHash { authenticatorData.head.appIDHash }

    /// Which key the object claims to attest.
    public var credentialID: KeyID { authenticatorData.credentialID }

    /// Which environment the object claims to come from; `nil` when it is neither.
    public var environment: AttestationEnvironment? {
        AttestationEnvironment(aaguid: authenticatorData.aaguid)
    }

    /// The flags byte, for people to look at. It decides nothing.
    public var flags: UInt8 { authenticatorData.head.flags }

    /// The counter the object claims.
    public var counter: SignCounter { authenticatorData.head.counter }

    /// What 27 and later say about the build.
    public var extensions: AuthenticatorExtensions { authenticatorData.extensions }

    /// What the certificate says about the device.
    public var details: LeafDetails { LeafDetails(leaf) }
}
