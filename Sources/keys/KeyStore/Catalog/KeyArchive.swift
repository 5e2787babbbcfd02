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

/// A store as the `keys` commands see it, with or without a running gateway.
///
/// Whatever changes keys has been told to the running gateways when it returns.
package protocol KeyArchive: AnyObject, Sendable {
    /// A page of the keys that the filter admits, in the order of their key ids: those behind
    /// `last`, at most `limit`, and with some filters fewer although more follow.
    func scan(
        _ filter: KeyFilter,
        after last: KeyID?,
        limit: Int
    ) throws(StoreProblem) -> KeyPage

    /// All that is stored of a key; `nil` when it is not known.
    func record(_ keyID: KeyID) throws(StoreProblem) -> KeyRecord?

    /// The keys whose ``DeviceKey/KeyID/logName`` begins so. Reads all key ids.
    func keyIDs(loggedAs name: String) throws(StoreProblem) -> [KeyID]

    /// How many keys are stored.
    func count() throws(StoreProblem) -> Int

    /// What is stored of those of these keys that are known.
    func identities(of keyIDs: [KeyID]) throws(StoreProblem) -> [KeyID: KeyIdentity]

    /// Stores keys in the order given where one comes twice. One that was deleted is deleted here,
    /// too. A store may take several transactions for them: what fails between two of them is
    /// simply stored again.
    ///
    /// - Returns: for each key in turn what was done.
    func store(_ records: [KeyRecord]) throws(StoreProblem) -> [StoreOutcome]

    /// Revokes a key. When this returns, no gateway admits an assertion of it any more, and when
    /// ``awaitGateways()`` has returned, too, nothing of its sessions.
    ///
    /// This and what follows throw `gatewayNotTold` when the change is stored, and a running
    /// gateway has not said that it has read that.
    func revoke(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Revocation

    /// Undoes a revocation. Counters are what they were.
    func restore(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Restoration

    /// Forgets a key, so that it is unknown from now on, and can't be enrolled again. Nothing
    /// undoes it.
    func delete(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Deletion

    /// Deletes those of a piece of the keys that were enrolled and last used before a second of
    /// Unix time. Keys of which neither is known stay.
    ///
    /// - row: behind which the piece begins; 0 for the first.
    func expire(
        unusedSince second: Int64,
        behind row: Int64,
        _ note: ChangeNote
    ) throws(StoreProblem) -> ExpiryPiece

    /// Waits until no gateway uses what it knew before the changes. Blocks.
    func awaitGateways()

    /// The last changes by commands, the newest first.
    ///
    /// - keyID: of this key alone.
    func changes(of keyID: KeyID?, limit: Int) throws(StoreProblem) -> [KeyChange]

    /// Has the receipt of a key renewed before all others, by the gateway that runs or by the next
    /// one.
    ///
    /// - `now`: second of Unix time.
    func askRenewal(of keyID: KeyID, now: Int64) throws(StoreProblem) -> RenewalRequest

    /// How all receipts stand.
    ///
    /// - `now`: second of Unix time.
    func receiptCensus(at now: Int64) throws(StoreProblem) -> ReceiptCensus

    /// Ends its use. Nothing is called afterwards.
    func close() throws(StoreProblem)
}

extension KeyArchive {
    package func awaitGateways() {}
}

/// What has become of the wish to have a receipt renewed.
package enum RenewalRequest: Equatable, Sendable {
    case asked
    /// Apple gives no newer receipt before this second of Unix time, so nothing was changed.
    case tooEarly(until: Int64)
    case revoked
    /// The key is stored without a receipt.
    case withoutReceipt
    case unknown
}

/// Some keys of a list.
package struct KeyPage: Sendable {
    package var records: [KeyRecord]
    /// Behind which key the next page begins; `nil` after the last page.
    package var next: KeyID?

    package init(records: [KeyRecord], next: KeyID?) {
        self.records = records
        self.next = next
    }
}

/// What was done with a key that was to be stored.
package enum StoreOutcome: Sendable {
    case inserted
    /// It was there: its counter was raised, what was not known of it was added, and when either is
    /// revoked or deleted it is.
    case merged
    /// It is another key under the same id, or was deleted. Nothing was changed.
    case differs(KeyIdentity)
}

extension KeyArchive {
    /// Deletes all keys that were enrolled and last used before a second of Unix time, piece by
    /// piece, so that a running gateway goes on writing.
    ///
    /// - most: no piece is begun once this number is deleted.
    /// - Returns: how many.
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
}

extension KeyArchive {
    /// Gives the keys in the order of their key ids, in pages, so that a slow reader does not hold
    /// up a gateway. Each page is of one moment; a gateway may write between pages.
    package func forEach(
        _ filter: KeyFilter = KeyFilter(),
        _ body: (KeyRecord) throws -> Void
    ) throws {
        var last: KeyID?
        repeat {
            // Large: a store may have to read more than the page for each.
            let page = try scan(filter, after: last, limit: 20_000)
            for record in page.records { try body(record) }
            last = page.next
        } while last != nil
    }

    /// Writes keys as lines of JSON in the order of their key ids, see ``KeyLine``.
    ///
    /// - `sink`: takes some lines at a time.
    /// Returns how many keys were written.
    package func export(
        _ filter: KeyFilter = KeyFilter(),
        to sink: ([UInt8]) throws -> Void
    ) throws -> Int {
        var count = 0
        var bytes: [UInt8] = []
        try forEach(filter) { record in
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
