/// Why a certificate, or a path of certificates, is not good.
public struct X509CertificateError: Error, Sendable, Equatable {
    /// What is wrong, for code.
    @nonexhaustive
    public enum Reason: String, Sendable, CaseIterable {
        /// Not one DER certificate, or longer than ``X509Certificate/bytesMax``.
        case malformed
        /// No path of valid signatures leads to one of the anchors.
        case untrusted
        /// The path is right, and a certificate of it is no longer valid.
        case expired
        /// The path is right, and a certificate of it is not valid yet.
        case notYetValid
    }

    /// What is wrong, for code.
    public let reason: Reason
    /// What is wrong, for people. Not compared.
    public let detail: String

    init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    /// Whether two errors have the same reason.
    public static func == (left: Self, right: Self) -> Bool {
        left.reason == right.reason
    }
}
