import Dispatch
import Expectations
import KeyStore
import Testing

extension StoreContract {
    static let receipts = [
        StoreContract("a renewed receipt is durable, and its metric in the table") {
            (bench) throws in
            var key = KeyRecord.sample(1)
            key.receipt = [1]
            key.receiptState = ReceiptState(createdAt: 1_000, expiresAt: 9_000)
            try bench.enrol(key)
            try expectEqual(bench.known(key.keyID).risk, .unknown)
            let change = renewal(of: key, at: 2_000_000, metric: 7)
            try expectEqual(bench.renew(change), nil)
            try expectEqual(bench.known(key.keyID).risk.metric, 7)
            try bench.restart(crash: true)
            try expectEqual(bench.known(key.keyID).risk, KeyRisk(metric: 7, at: 2_000_000))
            let stored = try #require(try bench.lab.stored(key.keyID))
            expectEqual(stored.receipt, change.receipt)
            expectEqual(stored.receiptState, change.state)
        },
        StoreContract("an older receipt never takes the place of a newer one, in any order") {
            (bench) throws in
            let early = 2_000_000 as Int64
            for (number, order) in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]].enumerated() {
                var key = KeyRecord.sample(UInt8(number + 1))
                key.receipt = [1]
                try bench.enrol(key)
                let row = Int64(number + 1)
                for step in order {
                    let time = early + Int64(step) * 90_000
                    let change = renewal(of: key, row, at: time, metric: UInt32(step + 5))
                    try expectEqual(bench.renew(change), nil)
                }
                let stored = try #require(try bench.lab.stored(key.keyID))
                expectEqual(stored.receipt, [7], "\(order)")
                expectEqual(stored.receiptState.riskMetric, 7)
                expectEqual(stored.receiptState.triedAt, early + 180_000)
                try expectEqual(bench.known(key.keyID).risk.metric, 7)
            }
        },
        StoreContract("a try that brought nothing leaves the receipt and its metric alone") {
            (bench) throws in
            var key = KeyRecord.sample(1)
            key.receipt = [1]
            try bench.enrol(key)
            try expectEqual(bench.renew(renewal(of: key, at: 2_000_000, metric: 7)), nil)
            var state = ReceiptState()
            state.triedAt = 2_100_000
            state.outcome = .gone
            state.dueAt = nil
            let change = ReceiptChange(row: 1, keyID: key.keyID, receipt: nil, state: state)
            try expectEqual(bench.renew(change), nil)
            let stored = try #require(try bench.lab.stored(key.keyID))
            expectEqual(stored.receipt, [7])
            expectEqual(stored.receiptState.riskMetric, 7)
            let end: Int64 = 2_000_000 + 90 * 86_400
            expectEqual(stored.receiptState.expiresAt, end)
            expectEqual(stored.receiptState.outcome, .gone)
            expectEqual(stored.receiptState.triedAt, 2_100_000)
            expectEqual(stored.receiptState.dueAt, nil)
            try expectEqual(bench.known(key.keyID).risk.metric, 7)
        },
        StoreContract("a try behind a clock that was set back is stored, so it is not made again") {
            (bench) throws in
            var key = KeyRecord.sample(1)
            key.receipt = [1]
            key.receiptState = ReceiptState(createdAt: 1_000, expiresAt: 9_000_000)
            // Of a clock that was years ahead.
            key.receiptState.triedAt = 90_000_000
            key.receiptState.outcome = .early
            try bench.enrol(key)
            var state = ReceiptState()
            (state.triedAt, state.outcome, state.dueAt) = (2_000_000, .rejected, 2_600_000)
            let rejected = ReceiptChange(row: 1, keyID: key.keyID, receipt: nil, state: state)
            try expectEqual(bench.renew(rejected), nil)
            let stored = try #require(try bench.lab.stored(key.keyID)).receiptState
            expectEqual(stored.triedAt, 2_000_000)
            expectEqual(stored.outcome, .rejected)
            expectEqual(stored.dueAt, 2_600_000)
            // What two tries at the same time may be out of order changes nothing.
            (state.triedAt, state.outcome) = (1_999_999, .early)
            let early = ReceiptChange(row: 1, keyID: key.keyID, receipt: nil, state: state)
            try expectEqual(bench.renew(early), nil)
            try expectEqual(bench.lab.stored(key.keyID)?.receiptState.outcome, .rejected)
            // A newer receipt brings its outcome along, whatever the clock said before.
            try expectEqual(bench.renew(renewal(of: key, at: 1_500_000, metric: 4)), nil)
            try expectEqual(bench.lab.stored(key.keyID)?.receiptState.outcome, .renewed)
        },
        StoreContract("a renewed receipt that can't be written is told so and changes nothing") {
            (bench) throws in
            var key = KeyRecord.sample(1)
            key.receipt = [1]
            try bench.enrol(key)
            let error = JournalError(.full, "test")
            bench.journal.fail(.before(error))
            let change = renewal(of: key, at: 2_000_000, metric: 7)
            try expectEqual(bench.renew(change), error)
            try expectEqual(bench.known(key.keyID).risk, .unknown)
            try expectEqual(bench.lab.stored(key.keyID)?.receipt, [1])
            bench.journal.fail(nil)
            try expectEqual(bench.renew(change), nil)
            try expectEqual(bench.known(key.keyID).risk.metric, 7)
        },
        StoreContract("as many renewed receipts wait as may wait, and not one more") {
            (bench) throws in
            var key = KeyRecord.sample(1)
            key.receipt = [1]
            try bench.enrol(key)
            try bench.restart { $0.renewalsMax = 2 }
            let gate = bench.journal.holdUp()
            // The first batch stands still in the journal while the next ones gather.
            try bench.enrolLater(.sample(2))
            gate.entered.wait()
            let ends = (0..<3).map { _ in Box<Bool>() }
            let done = DispatchGroup()
            for (index, end) in ends.enumerated() {
                done.enter()
                let time = 2_000_000 + Int64(index) * 100_000
                bench.table.renew(renewal(of: key, at: time, metric: 3)) { result in
                    if case .success = result { end.set(true) } else { end.set(false) }
                    done.leave()
                }
            }
            gate.open.signal()
            try bench.table.committer.flush()
            done.wait()
            expectEqual(ends.map(\.value), [true, true, false])
        },
    ]

    /// A receipt of one byte in exchange for the one that is stored.
    private static func renewal(
        of key: KeyRecord,
        _ row: Int64 = 1,
        at time: Int64,
        metric: UInt32
    ) -> ReceiptChange {
        var state = ReceiptState(createdAt: time, expiresAt: time + 90 * 86_400)
        state.notBefore = time + 86_400
        state.riskMetric = metric
        state.metricAt = time
        state.triedAt = time
        state.outcome = .renewed
        state.dueAt = time + 7 * 86_400
        return ReceiptChange(
            row: row,
            keyID: key.keyID,
            receipt: [UInt8(truncatingIfNeeded: metric)],
            state: state
        )
    }
}

extension StoreContract.Bench {
    /// Stores a renewal and waits; why it failed.
    fileprivate func renew(_ change: ReceiptChange) throws -> JournalError? {
        let done = DispatchSemaphore(value: 0)
        let failure = Box<JournalError>()
        table.renew(change) { result in
            if case .failure(let error) = result { failure.set(error) }
            done.signal()
        }
        // What fails is told to who asked for it, too.
        try? table.committer.flush()
        done.wait()
        return failure.value
    }

    /// Enrols a key and does not wait.
    fileprivate func enrolLater(_ record: KeyRecord) throws {
        table.enrol(record) { _ in }
    }
}
