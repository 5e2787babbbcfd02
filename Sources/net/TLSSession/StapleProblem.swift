/// Why an OCSP response is not stapled.
package enum StapleProblem: String, Error, CaseIterable, Sendable {
    /// The file is missing or can't be read.
    case unreadable
    /// It is longer than ``StapledResponse/byteCountMax``.
    case tooLong = "too-long"
    /// It is no OCSP response in DER, or bytes stand behind it.
    case malformed
    /// The responder says that it has failed (RFC 6960 §4.2.1, OCSPResponseStatus).
    case unsuccessful
    /// The file of the certificate does not have the one of its issuer.
    case issuerMissing = "issuer-missing"
    /// It speaks of other certificates.
    case otherCertificate = "other-certificate"
    /// Neither the issuer nor a responder that the issuer names has signed it.
    case untrusted
    /// The certificate is revoked.
    case revoked
    /// The issuer does not know the certificate.
    case unknown
    /// It has no `nextUpdate`, so nobody can tell when it is too old.
    case endless
    /// Its `thisUpdate` is in the future.
    case early
    /// Its `nextUpdate` has passed.
    case expired

    /// What is there, as a noun.
    package var found: String {
        switch self {
        case .unreadable: "a file that can't be read"
        case .tooLong: "a file longer than \(StapledResponse.byteCountMax) bytes"
        case .malformed: "a file that is no OCSP response in DER"
        case .unsuccessful: "a response by which the authority's server says that it has failed"
        case .issuerMissing: "a certificate whose issuer is not in its file"
        case .otherCertificate: "a response for another certificate"
        case .untrusted: "a response that the certificate's issuer has not signed"
        case .revoked: "a response that says that the certificate is revoked"
        case .unknown: "a response that says that the issuer does not know the certificate"
        case .endless: "a response without nextUpdate"
        case .early: "a response that is not valid yet"
        case .expired: "a response that has ended"
        }
    }

    /// What the operator can do.
    package var use: String {
        switch self {
        case .issuerMissing: "the issuer's certificate behind the server's in the certificate file"
        case .revoked: "a new certificate"
        case .early: "this machine's clock set right, or another response"
        case .unreadable, .tooLong, .malformed, .unsuccessful, .otherCertificate, .untrusted,
            .unknown, .endless, .expired:
            "a fresh response: openssl ocsp -issuer CHAIN -cert CERTIFICATE -url URL -respout FILE"
        }
    }
}
