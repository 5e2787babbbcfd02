/// The fields of a request in which a rule looks, in lower case.
package struct FieldNames: Hashable, Sendable {
    package var keyID: [UInt8]
    package var assertion: [UInt8]
    package var challenge: [UInt8]
    package var unsupported: [UInt8]

    package init(keyID: [UInt8], assertion: [UInt8], challenge: [UInt8], unsupported: [UInt8]) {
        self.keyID = keyID
        self.assertion = assertion
        self.challenge = challenge
        self.unsupported = unsupported
    }

    /// The names used where a rule says nothing else.
    package static let standard = FieldNames(
        keyID: Array("app-attest-key-id".utf8),
        assertion: Array("app-attest-assertion".utf8),
        challenge: Array("app-attest-challenge".utf8),
        unsupported: Array("app-attest-unsupported".utf8)
    )

    /// All four, in the order of the properties.
    package var all: [[UInt8]] { [keyID, assertion, challenge, unsupported] }
}
