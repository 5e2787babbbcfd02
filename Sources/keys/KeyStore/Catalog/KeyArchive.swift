package import DeviceKey

// What the `keys` commands do with a store, whichever it is: list, show, import, export, revoke.
//
//     command ──▶ KeyArchive (what a store can do) ──▶ a database, and the gateways that run on it
//                     │
//                     ├ forEach, export      pages of keys, as lines of JSON
//                     ├ importLines          a file of lines, checked as a whole and then stored
//                     └ match                the key that an operator names
//
// A store brings its pages, its rows and its transactions (`KeyArchive`). The rest is here and the
// same for every store: lines (`KeyLine`), filters (`KeyFilter`), the checks of an import, and what
// operators read (`ImportReport`, `StoreProblem`).

/// A store in the form that the `keys` commands use, with or without a running gateway.
///
/// A call that changes keys returns after the running gateways were notified.
package protocol KeyArchive: AnyObject, Sendable {
    /// A page of the keys that match the filter, in the order of their key ids. It begins after
    /// `last` and has at most `limit` keys; with some filters it has fewer although more follow.
    func scan(_ filter: KeyFilter, after last: KeyID?, limit: Int) throws(StoreProblem) -> KeyPage

    /// All that is stored about a key; `nil` when it is not known.
    func record(_ keyID: KeyID) throws(StoreProblem) -> KeyRecord?

    /// The keys whose ``DeviceKey/KeyID/logName`` begins with this text. Reads all key ids.
    func keyIDs(
        loggedAs name: String,
        deleted: KeyFilter.Deleted
    ) throws(StoreProblem) -> [KeyID]

    /// The number of stored keys.
    func count() throws(StoreProblem) -> Int

    /// The stored identities of those of these keys that are known.
    func identities(of keyIDs: [KeyID]) throws(StoreProblem) -> [KeyID: KeyIdentity]

    /// Stores keys, in the given order where one comes twice. A deleted key is also deleted here.
    /// Of an erased one the mark is stored, see ``deleteMarked(_:)``. A store may take several
    /// transactions. After a failure between two of them, simply store the keys again.
    ///
    /// - Returns: the outcome for each key, in order.
    func store(_ records: [KeyRecord]) throws(StoreProblem) -> [StoreOutcome]

    /// A page of the spent tokens of other issuers, in the store's own order. It begins after
    /// `last` and has at most `limit` tokens. Some stores give their ``SpentToken/shortDigest``.
    func spentTokens(after last: SpentToken?, limit: Int) throws(StoreProblem) -> [SpentToken]

    /// Spends tokens that another store has spent.
    func spend(_ tokens: [SpentToken]) throws(StoreProblem)

    /// Revokes a key. When this returns, no gateway admits its assertions any more. When
    /// ``awaitGateways()`` has also returned, no gateway admits its sessions.
    ///
    /// This and the next functions throw `gatewayNotTold` when the change is stored, but a running
    /// gateway has not confirmed that it has read it.
    func revoke(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Revocation

    /// Undoes a revocation. Counters stay.
    func restore(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Restoration

    /// Deletes a key. It is unknown from now on, and can't be enrolled again. This can't be undone.
    /// Its id is there until ``eraseDeleted()``.
    func delete(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Deletion

    /// Puts a mark in the place of each deleted key, and removes all else that is known of it.
    ///
    /// Gateways learn of a deletion by the key id. So where it matters, call ``awaitGateways()``
    /// before.
    func eraseDeleted() throws(StoreProblem) -> Int

    /// Deletes the keys of which a mark is stored, since another store has erased them. Reads all
    /// key ids.
    func deleteMarked(_ note: ChangeNote) throws(StoreProblem)

    /// Removes what is left of erased keys in unused parts of the store's files.
    ///
    /// - Returns: why it may still be there; `nil` where it is not.
    func wipe() throws(StoreProblem) -> String?

    /// Deletes, in one piece of the keys, those that were enrolled and last used before a second of
    /// Unix time. Keys without both times stay.
    ///
    /// - row: the row after which the piece begins; 0 for the first piece.
    func expire(
        unusedSince second: Int64,
        behind row: Int64,
        _ note: ChangeNote
    ) throws(StoreProblem) -> ExpiryPiece

    /// The chains of a piece of the keys, in the order of their rows.
    ///
    /// - row: the row after which the piece begins; 0 for the first piece.
    func chains(after row: Int64) throws(StoreProblem) -> ChainPiece

    /// Makes the changes that a list of revoked certificates asks for, in one transaction, and
    /// notes each. A key that a command has revoked stays so.
    ///
    /// - Returns: those that were made.
    func apply(
        _ changes: [ListedChange],
        now: Int64,
        by actor: String
    ) throws(StoreProblem) -> [ListedKey]

    /// Waits until no gateway uses its state from before the changes. Blocks.
    func awaitGateways()

    /// The last changes by commands, the newest first.
    ///
    /// - keyID: only changes of this key; `nil` for all.
    func changes(of keyID: KeyID?, limit: Int) throws(StoreProblem) -> [KeyChange]

    /// Makes the gateway renew the receipt of a key before all others. It is the running gateway,
    /// or the next one that starts.
    ///
    /// - `now`: second of Unix time.
    func askRenewal(of keyID: KeyID, now: Int64) throws(StoreProblem) -> RenewalRequest

    /// The state of all receipts.
    ///
    /// - `now`: second of Unix time.
    func receiptCensus(at now: Int64) throws(StoreProblem) -> ReceiptCensus

    /// Ends its use. No call may follow.
    func close() throws(StoreProblem)
}

extension KeyArchive {
    package func awaitGateways() {}
    package func wipe() throws(StoreProblem) -> String? { nil }

    /// Deletes all keys that were enrolled and last used before a second of Unix time. It works
    /// piece by piece, so that a running gateway can write meanwhile.
    ///
    /// - most: after this number of deletions no further piece begins.
    /// - Returns: the number of deleted keys.
    package func expireAll(
        unusedSince second: Int64,
        atMost most: Int = .max,
        _ note: ChangeNote
    ) throws(StoreProblem) -> Int {
        var count = 0
        var row: Int64? = 0
        while let behind = row, count < most {
            let piece = try expire(unusedSince: second, behind: behind, note)
            count += piece.deleted
            row = piece.next
        }
        return count
    }

    /// Gives the keys in the order of their key ids, in pages, so that a slow reader does not delay
    /// a gateway. Each page is of one moment; a gateway may write between pages.
    package func forEach(
        _ filter: KeyFilter = KeyFilter(),
        _ body: (KeyRecord) throws -> Void
    ) throws {
        var last: KeyID?
        repeat {
            // Large, since a store may have to read more than the page for each page.
            let page = try scan(filter, after: last, limit: 20_000)
            for record in page.records { try body(record) }
            last = page.next
        } while last != nil
    }

    /// Writes keys as lines of JSON in the order of their key ids, see ``KeyLine``. Marks of erased
    /// keys are of no app, so they come where the filter leaves out no key.
    ///
    /// - `sink`: takes some lines at a time.
    /// - Returns: the number of written keys.
    package func export(
        _ filter: KeyFilter = KeyFilter(),
        to sink: ([UInt8]) throws -> Void
    ) throws -> Int {
        var count = 0
        var bytes: [UInt8] = []
        var filter = filter
        if filter.isWhole { filter.deleted = .included }
        try forEach(filter) { record in
            if case .deleted = record.status { return }
            bytes += KeyLine.bytes(record)
            count += 1
            if bytes.count >= 1 << 16 {
                try sink(bytes)
                bytes.removeAll(keepingCapacity: true)
            }
        }
        if !bytes.isEmpty { try sink(bytes) }
        return count
    }
}

/// A part of a list of keys.
package struct KeyPage: Sendable {
    package var records: [KeyRecord]
    /// The key after which the next page begins; `nil` after the last page.
    package var next: KeyID?

    package init(records: [KeyRecord], next: KeyID?) {
        self.records = records
        self.next = next
    }
}

/// The outcome for a key that was to be stored.
package enum StoreOutcome: Sendable {
    case inserted
    /// It was stored before. Its counter was raised, and unknown facts were added. It is revoked or
    /// deleted if either was.
    case merged
    /// It is another key under the same id, or was deleted. Nothing was changed.
    case differs(KeyIdentity)
}

/// The result of asking for the renewal of a receipt.
package enum RenewalRequest: Equatable, Sendable {
    case asked
    /// Apple gives no newer receipt before this second of Unix time, so nothing was changed.
    case tooEarly(until: Int64)
    case revoked
    /// The key is stored without a receipt.
    case withoutReceipt
    case unknown
}

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
    /// The most changes that a store keeps; the oldest are removed.
    package static let keptMax = 100_000

    /// The raw value is the word in the store and in lists.
    package enum Action: String, CaseIterable, Hashable, Sendable {
        case revoked, restored, deleted
        /// Deleted because it was not used for long.
        case expired
        /// All keys: a backup replaced the database.
        case storeRestored = "store-restored"
    }

    package let action: Action
    /// `nil` when several keys were changed at once, and of a key that was erased since.
    package let keyID: KeyID?
    package let keys: Int
    package let note: ChangeNote

    package init(_ action: Action, of keyID: KeyID?, keys: Int, _ note: ChangeNote) {
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
