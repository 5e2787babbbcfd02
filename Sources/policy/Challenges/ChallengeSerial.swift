/// The place of an issued challenge among those of its purpose: what is spent.
///
/// Comes out of ``ChallengeIssuer/examine(_:purpose:now:)`` only.
package struct ChallengeSerial: Hashable, Sendable {
    package let purpose: ChallengePurpose
    /// Which start of a gateway issued it: serial numbers of two starts may be the same.
    package let epoch: UInt64
    package let number: UInt64
    /// Seconds since 1970.
    package let expiry: Int64
}
