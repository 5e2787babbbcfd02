package import AppAttest

/// Whose session may be opened: what an admitted request to open one has proved.
///
/// A reference, so that it costs other requests one word.
package final class SessionGrant: Sendable {
    package let keyID: KeyID
    package let assertion: VerifiedAssertion

    init(_ keyID: KeyID, _ assertion: VerifiedAssertion) {
        self.keyID = keyID
        self.assertion = assertion
    }
}
