package import DeviceKey

/// What a copy of a store did, or would do.
package struct CopyReport: Sendable {
    /// Keys that are listed as ``differing``; further ones are counted.
    package static let differingMax = 100

    /// Keys that were not there.
    package internal(set) var inserted = 0
    /// Keys that were there with less: a lower counter, no revocation.
    package internal(set) var raised = 0
    /// Keys that were there with all that the source knows, or more.
    package internal(set) var unchanged = 0
    /// Keys that the source has deleted, and the target had not.
    package internal(set) var deleted = 0
    /// Keys that are another key in the target, or were deleted there: their ids, and why.
    package private(set) var differing: [(keyID: KeyID, why: String)] = []
    package private(set) var differingCount = 0

    /// Keys of the source that were looked at.
    package var count: Int { inserted + raised + unchanged + deleted + differingCount }

    mutating func differs(_ keyID: KeyID, _ why: String) {
        differingCount += 1
        if differing.count < Self.differingMax { differing.append((keyID, why)) }
    }
}
