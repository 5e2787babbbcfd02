package import DeviceKey

/// The author, time and reason of a change of keys: the store keeps them for each change by a
/// command.
package struct ChangeNote: Hashable, Sendable {
    /// The longest reason, in bytes.
    package static let whyBytesMax = 500

    /// Second of Unix time.
    package let now: Int64
    /// The user's name in the system.
    package let actor: String
    package let why: String?

    package init(now: Int64, by actor: String = "unknown", why: String? = nil) {
        self.now = now
        self.actor = actor
        self.why = why
    }
}

/// A change of keys that was made.
package struct KeyChange: Hashable, Sendable {
    /// The raw value is the word in the store and in lists.
    package enum Action: String, CaseIterable, Hashable, Sendable {
        case revoked, restored, deleted
        /// Deleted because it was not used for long.
        case expired
        /// All keys: a backup replaced the database.
        case storeRestored = "store-restored"
    }

    package let action: Action
    /// `nil` when several keys were changed at once.
    package let keyID: KeyID?
    package let keys: Int
    package let note: ChangeNote

    package init(_ action: Action, _ keyID: KeyID?, keys: Int, _ note: ChangeNote) {
        self.action = action
        self.keyID = keyID
        self.keys = keys
        self.note = note
    }
}

/// The result of a revocation.
package enum Revocation: Equatable, Sendable {
    case revoked
    /// It was revoked before, at this second of Unix time.
    case alreadyRevoked(at: Int64)
    case unknown
}

/// The result of ending a revocation.
package enum Restoration: Equatable, Sendable {
    case restored
    /// It is not revoked.
    case active
    /// It is unknown, or was deleted.
    case unknown
}

/// The result of a deletion.
package enum Deletion: Equatable, Sendable {
    case deleted
    /// It was deleted before, at this second of Unix time.
    case alreadyDeleted(at: Int64)
    case unknown
}

/// The result of expiring a part of the keys.
package struct ExpiryPiece: Equatable, Sendable {
    package let deleted: Int
    /// The row after which the next piece begins; `nil` after the last one.
    package let next: Int64?

    package init(deleted: Int, next: Int64?) {
        self.deleted = deleted
        self.next = next
    }
}
