/// Where DER stopped being DER.
package struct DERError: Error, Equatable {
    /// What was wrong.
    package enum Reason: String, Sendable {
        case truncated, unexpectedTag, tagTooLarge, lengthNotDefinite, lengthNotMinimal
        case lengthTooLarge, trailingOctets, badInteger, duplicate, tooMany
    }

    package let reason: Reason
    /// The offset of the element, in the bytes that the cursor walks.
    package let offset: Int

    package init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}
