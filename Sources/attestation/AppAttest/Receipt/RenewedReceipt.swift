public import Cryptography

/// The proof that a receipt came in exchange for an older one and passed every check. Only
/// `UnverifiedReceipt.renewed(…)` makes one.
public struct RenewedReceipt: Sendable {
    /// The receipt, to be kept in the place of the older one.
    public let receipt: VerifiedReceipt
    /// Field 19: before this, Apple gives no newer receipt.
    public let notBefore: UnixTime
    /// Field 21: after this, Apple takes the receipt no more.
    public let expirationTime: UnixTime
    /// Field 17: about how many keys of the app the device has had attested within 30 days. `nil`
    /// when it is not known: the field is missing, no number, or absurd.
    public let riskMetric: UInt32?

    init(
        receipt: VerifiedReceipt,
        notBefore: UnixTime,
        expirationTime: UnixTime,
        riskMetric: UInt32?
    ) {
        self.receipt = receipt
        self.notBefore = notBefore
        self.expirationTime = expirationTime
        self.riskMetric = riskMetric
    }
}
