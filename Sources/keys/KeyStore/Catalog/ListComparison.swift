package import DeviceKey

// Comparing the chains of stored keys with a list of revoked certificates.
//
// A list revokes keys as a command does, and the gateways learn of it in the same way. Two rules
// keep the list and the operator apart. A key that the list has revoked is marked (`listed`), and
// comes back when a newer list no longer names its certificates. A key that a command has revoked
// has no mark, and only a command brings it back; `keys revoke` takes the mark of a listed key
// away.
//
// The gateways of a store may have different lists: one can't fetch it, or begins with the list of
// its release. Any list revokes, and only a list that is newer than the mark brings back. Otherwise
// the older list of one gateway would undo what the newer list of another one has done.

/// A stored chain.
package struct StoredChain: Hashable, Sendable {
    /// The key, as ``KeyRow/row``.
    package let row: Int64
    /// As ``ChainRecord/serialText``.
    package let serialText: String
    /// The second of Unix time at which a list has revoked the key; `nil` where none has.
    package let listedAt: Int64?

    package init(row: Int64, serialText: String, listedAt: Int64?) {
        self.row = row
        self.serialText = serialText
        self.listedAt = listedAt
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
    /// Keys that are not in the list and stay revoked, since the list is older than their mark.
    package internal(set) var withheld = 0
    /// The last row; keys that are stored later have higher ones.
    package internal(set) var last: Int64

    /// The last rows that were compared, ``recentMax`` at most.
    package fileprivate(set) var recent: [Int64] = []
    /// Second of Unix time at which Google vouched for the list.
    private let date: Int64
    private let passed: Set<Int64>

    package static let recentMax = 1_000

    /// - row: the row after which it begins.
    /// - passed: rows after that which were compared with this list before. A command may have
    ///   restored such a key since.
    package init(after row: Int64 = 0, passing passed: some Sequence<Int64> = [], date: Int64) {
        (last, self.passed, self.date) = (row, Set(passed), date)
    }

    /// What a list asks for that says this of a chain; `nil` for no change.
    fileprivate mutating func change(_ chain: StoredChain, _ entry: String?) -> ListedChange? {
        guard !passed.contains(chain.row), (entry != nil) != (chain.listedAt != nil) else {
            return nil
        }
        if let second = chain.listedAt, second >= date {
            withheld += 1
            return nil
        }
        return ListedChange(row: chain.row, entry: entry)
    }
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
            if let change = comparison.change(chain, found) { changes.append(change) }
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
        let rows = comparison.recent + piece.chains.map(\.row)
        comparison.recent = Array(rows.suffix(ListComparison.recentMax))
        comparison.compared += piece.chains.count
        comparison.last = piece.chains.last?.row ?? comparison.last
        return piece.next != nil
    }
}
