/// The place of an issued challenge among those of its purpose: what is spent.
///
/// Comes out of ``ChallengeIssuer/examine(_:purpose:now:)`` only.
package struct ChallengeSerial: Hashable, Sendable {
    package let purpose: ChallengePurpose
    let number: UInt64
}
