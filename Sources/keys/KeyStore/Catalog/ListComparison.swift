package import DeviceKey

// Comparing the chains of stored keys with a list of revoked certificates.
//
// A list revokes keys as a command does, and the gateways learn of it in the same way. Two rules
// keep the list and the operator apart. A key that the list has revoked is marked (`listed`), and
// comes back when a newer list no longer names its certificates. A key that a command has revoked
// has no mark, and only a command brings it back; `keys revoke` takes the mark of a listed key
// away.

/// A stored chain.
package struct StoredChain: Hashable, Sendable {
    /// The key, as ``KeyRow/row``.
    package let row: Int64
    /// As ``ChainRecord/serialText``.
    package let serialText: String
    /// Whether a list has revoked the key.
    package let isListed: Bool

    package init(row: Int64, serialText: String, isListed: Bool) {
        self.row = row
        self.serialText = serialText
        self.isListed = isListed
    }
}

/// A part of the stored chains.
package struct ChainPiece: Sendable {
    /// The most chains of a piece.
    package static let countMax = 4_096

    package var chains: [StoredChain]
    /// The row after which the next piece begins; `nil` after the last one.
    package var next: Int64?

    package init(_ chains: [StoredChain]) {
        self.chains = chains
        next = chains.count < Self.countMax ? nil : chains.last?.row
    }
}

/// A change that a list asks for.
package struct ListedChange: Hashable, Sendable {
    package let row: Int64
    /// The entry for which the key is revoked, as ``ChainRecord/listed``; `nil` where it is good
    /// again.
    package let entry: String?

    package init(row: Int64, entry: String?) {
        self.row = row
        self.entry = entry
    }

    /// The reason for the record.
    package var why: String {
        entry.map { "Google's status list: \($0)" } ?? "no longer in Google's status list"
    }
}

/// A key that a list has changed.
package struct ListedKey: Hashable, Sendable {
    package let keyID: KeyID
    package let change: ListedChange

    package init(_ keyID: KeyID, _ change: ListedChange) {
        self.keyID = keyID
        self.change = change
    }
}

/// The progress of a comparison.
package struct ListComparison: Sendable {
    /// Chains that were compared.
    package internal(set) var compared = 0
    package internal(set) var revoked = 0
    package internal(set) var restored = 0
    /// The last row; keys that are stored later have higher ones.
    package internal(set) var last: Int64

    package init(after row: Int64 = 0) { last = row }
}

extension KeyArchive {
    /// Keys of one transaction: few enough that a gateway's commits wait some milliseconds.
    private static var changesMax: Int { 500 }

    /// Compares the next piece of the chains with a list, and makes the changes that it asks for.
    ///
    /// - entry: what the list says of a serial, for ``ChainRecord/listed``; `nil` where it is not
    ///   in the list.
    /// - told: called with the keys that were changed.
    /// - Returns: whether more chains follow.
    package func compare(
        _ comparison: inout ListComparison,
        with entry: (Substring) -> String?,
        now: Int64,
        by actor: String,
        told: ([ListedKey]) -> Void
    ) throws(StoreProblem) -> Bool {
        let piece = try chains(after: comparison.last)
        var changes: [ListedChange] = []
        for chain in piece.chains {
            let found = chain.serialText.split(separator: " ").lazy.compactMap(entry).first
            if (found != nil) != chain.isListed {
                changes.append(ListedChange(row: chain.row, entry: found))
            }
        }
        for start in stride(from: 0, to: changes.count, by: Self.changesMax) {
            let made = try apply(
                Array(changes[start...].prefix(Self.changesMax)),
                now: now,
                by: actor
            )
            comparison.revoked += made.count { $0.change.entry != nil }
            comparison.restored += made.count { $0.change.entry == nil }
            if !made.isEmpty { told(made) }
        }
        comparison.compared += piece.chains.count
        comparison.last = piece.chains.last?.row ?? comparison.last
        return piece.next != nil
    }
}
