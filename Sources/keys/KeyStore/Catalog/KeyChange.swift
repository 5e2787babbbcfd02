package import DeviceKey

/// Who changes keys, when and why: what the store keeps of each change by a command.
package struct ChangeNote: Hashable, Sendable {
    /// The longest reason, in bytes.
    package static let whyBytesMax = 500

    /// Second of Unix time.
    package let now: Int64
    /// The user, as the system knows it.
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
        /// Deleted for not having been used for long.
        case expired
        /// All keys: a backup took the place of the database.
        case storeRestored = "store-restored"
    }

    package let action: Action
    /// `nil` when it was several keys at once.
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

/// How a revocation went.
package enum Revocation: Equatable, Sendable {
    case revoked
    /// It was revoked before, at this second of Unix time.
    case alreadyRevoked(at: Int64)
    case unknown
}

/// How the end of a revocation went.
package enum Restoration: Equatable, Sendable {
    case restored
    /// It is not revoked.
    case active
    /// It is unknown, or was deleted.
    case unknown
}

/// How a deletion went.
package enum Deletion: Equatable, Sendable {
    case deleted
    /// It was deleted before, at this second of Unix time.
    case alreadyDeleted(at: Int64)
    case unknown
}

/// A part of the keys was looked at for those that were not used for long.
package struct ExpiryPiece: Equatable, Sendable {
    package let deleted: Int
    /// After which row the next piece begins; `nil` after the last one.
    package let next: Int64?

    package init(deleted: Int, next: Int64?) {
        self.deleted = deleted
        self.next = next
    }
}
