package import DeviceKey
internal import Synchronization

// The enrolled keys and their counters: the contract, the table in memory, and the writer.
//
//     event loops ──find, consume, enrol──▶ KeyTable ──changes──▶ Committer ──batches──▶ KeyJournal
//       ▲                                                      │                     (SQLite,
//       └──────────── CommitListener: commitEnded(_:) ─────────┘                      memory)
//
// The journal determines who decides whether a counter and a challenge are free (`decides`):
//
// - in memory: the table is the truth, since no other gateway writes to the journal. `consume`
//   answers `decided`, or `pending` when the caller waits for the disk.
// - at commit: other gateways write there too, so only the journal knows. `consume` refuses uses
//   that the table knows to be impossible and answers `pending` to all others. The journal decides
//   all uses of a batch in one step, and answers each.
//
// Either way a commit is reported ticket by ticket: `admitted`, `refused` with a reason, or
// `unassured` when the journal has failed.
//
// `KeyTable` holds every key, so that a lookup costs no I/O and no event loop waits for the disk to
// verify. It consists of shards, each under a mutex. `consume` is the central step. Under the
// shard's lock it checks whether the key is revoked and whether the counter is free. Under the
// writer's lock it checks that there is room for the change, spends the challenge, moves the
// counter and appends the change. A refused use changes nothing.
//
// `Committer` is the only writer. It runs on one serial queue and commits all waiting changes in
// one transaction. A change without a waiting caller may wait for a moment (`behindDelay`), so that
// transactions are large. When a commit fails, the waiting callers are notified. The values are
// kept and written later, merged with later ones. A failed batch may have reached the disk
// nevertheless: values only grow, so writing them again does no harm. Uses that a failed journal
// was to decide are decided in memory, so that an admitted assertion is good once. Their values are
// kept and written in the same way.
//
// The promises and what keeps them:
//
// 1. No assertion is admitted twice. `CounterState` never forgets an admitted counter: it has the
//    highest one, and a bitmap of the 64 below it. States are only merged (highest of both, union
//    of both), in memory and on disk, so late, repeated or reordered writes are harmless. Over a
//    crash: a request that needs it waits for its ticket; for other requests the challenge dies
//    with the process (see ChallengePurpose.swift).
// 2. A key answered 201 is on disk: the outcome of `enrol` is reported after the commit.
// 3. A revoked key is refused from the moment the command returns. The command commits, notifies
//    the gateway, and returns when the gateway has read the change. While the gateway can't read,
//    or sees that commands use other files, `find` answers `outdated` or `unavailable`, and
//    `consume` `unassured` or `unavailable`, never `admitted`. A lookup itself reads one word of
//    the gateway's own memory. A journal that decides checks it with each use.
// 4. A stored counter never goes down: see 1. Where an older copy of the store was put back, the
//    key's anchor is lost (`CounterAnchor`), and a use needs a challenge.
//
// `renew` writes a receipt that has replaced an older one, or the outcome of a try to get one. No
// caller waits for it: it is written with the next batch, and a failed one is renewed again. The
// metric is in the table once it is on disk. Receipts themselves are only on disk (`ReceiptStore`).
//
// Memory: an entry takes 128 bytes, 4 of them for the risk metric and its day, and the index 6…12,
// so a million keys take about 135 MiB.

/// An App ID, interned: keys of one app share its text.
package struct AppNumber: Hashable, Sendable {
    let rawValue: UInt32
}

/// The App IDs that have a number: those of the configuration and of the stored keys. So the
/// operator decides the length of the list.
package final class AppNumbers: Sendable {
    private struct State {
        var names: [String] = []
        var numbers: [String: AppNumber] = [:]
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of an App ID. It stays for the life of the process.
    package func number(of appID: String) -> AppNumber {
        state.withLock { state in
            if let number = state.numbers[appID] { return number }
            let number = AppNumber(rawValue: UInt32(state.names.count))
            state.names.append(appID)
            state.numbers[appID] = number
            return number
        }
    }

    /// The App ID of a number from ``number(of:)``.
    package func appID(of number: AppNumber) -> String {
        state.withLock { state in
            let index = Int(number.rawValue)
            precondition(index < state.names.count, "AppNumbers: a number of another list")
            return state.names[index]
        }
    }
}

/// The authority that attested a key. The raw value is the word in rules, logs and exports.
package enum KeyEnvironment: String, CaseIterable, Hashable, Sendable {
    case production
    case development
    /// An authority of the operator, for simulators, CI and the demonstration.
    case test

    /// Its number in a journal. Never renumber.
    package var number: UInt8 {
        switch self {
        case .production: 1
        case .development: 2
        case .test: 3
        }
    }

    /// The environment with this number; `nil` when there is none.
    package init?(number: UInt8) {
        guard let found = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = found
    }
}

extension DevicePlatform {
    /// Its number in a journal. Never renumber.
    package var number: UInt8 {
        switch self {
        case .apple: 1
        case .android: 2
        }
    }

    /// The platform with this number; `nil` when there is none.
    package init?(number: UInt8) {
        guard let found = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = found
    }
}

/// Which counters are admitted after the highest one seen.
package enum StoreCounterRule: Hashable, Sendable {
    /// Greater than all before.
    case strict
    /// Greater, or unseen and at most this far below the highest. Taken as 1…64.
    case window(Int)
}
