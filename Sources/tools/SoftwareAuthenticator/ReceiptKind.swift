/// How a receipt comes about.
public enum ReceiptKind: Hashable, Sendable {
    /// In an attestation: type ATTEST, without a risk metric.
    case attest
    /// From Apple's server, in exchange for an older one: type RECEIPT.
    ///
    /// `riskMetric` is about how many keys of the app the device has had attested within 30 days.
    case refreshed(riskMetric: UInt32)
}
