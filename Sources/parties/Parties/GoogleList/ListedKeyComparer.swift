import Cryptography
import Dispatch
import Encodings
import EventLoops
import KeyAttestation
import KeyStore
import Logging
import OutboundCalls
import Synchronization

/// Compares the chains of all enrolled keys with Google's list, on a queue of its own.
///
/// It works on the store as a command does, piece by piece, so neither event loops nor the writer
/// wait for it, and every gateway of the store obeys. Between lists, the list in use is compared
/// three times a minute with the keys that were enrolled since: another gateway may have judged
/// them by an older list, and this one while the list came.
final class ListedKeyComparer: Sendable {
    /// The author of the changes, for `keys history`.
    static let actor = "portcullis"
    /// The pause after a failure of the store, by the number of consecutive ones.
    private static let pauses = BackOff(first: .seconds(1), most: .seconds(30))
    /// Keys for which a line of the log is written, of one comparison.
    private static let toldMax = 20
    /// Rows before the last one that are compared again: a database may show a row later than the
    /// next one.
    private static let overlap = Int64(ListComparison.recentMax)
    /// The time between two comparisons of one list. A key that the list names is refused within a
    /// minute of its enrolment then.
    private static let pause = DispatchTimeInterval.seconds(20)

    /// A comparison of all keys up to a row.
    private struct Done {
        /// The list, with its date when the first of the keys was compared.
        let list: KnownStatusList
        let last: Int64
        let recent: [Int64]
        /// Whether the same list brings keys back when it has a later date.
        let isWithholding: Bool
    }

    private struct State {
        var list: KnownStatusList?
        var done: Done?
        var isRunning = false
        /// A pause with a lower number than this one ends without a comparison.
        var pause: UInt64 = 0
        var isEnded = false
        var facts = StatusListFacts.Keys()
    }

    private let context: PartyContext
    private let queue = DispatchQueue(label: "portcullis.listed", qos: .utility)
    private let state = Mutex(State())

    init(_ context: PartyContext) { self.context = context }

    /// A list came, or the list in use was confirmed. A comparison with an older one ends.
    func compare(with list: KnownStatusList) {
        let begins = state.withLock { state in
            state.list = list
            state.pause &+= 1
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if begins { queue.async { self.run(failures: 0) } }
    }

    /// Makes no further change.
    func end() { state.withLock { $0.isEnded = true } }

    var facts: StatusListFacts.Keys { state.withLock(\.facts) }

    // MARK: On the queue

    private func run(failures: Int) {
        while let (list, before) = next() {
            let start = ContinuousClock.now
            var comparison = ListComparison(
                after: before.map { max($0.last - Self.overlap, 0) } ?? 0,
                passing: before?.recent ?? [],
                date: list.date
            )
            do throws(StoreProblem) {
                guard try compare(list.list, &comparison) else { continue }
            } catch {
                return retry(after: failures + 1, error)
            }
            state.withLock { state in
                state.done = Done(
                    list: before?.list ?? list,
                    last: comparison.last,
                    recent: comparison.recent,
                    isWithholding: before?.isWithholding ?? (comparison.withheld > 0)
                )
                // Only what is not asked for again is done.
                if state.list == list { state.list = nil }
                state.facts.seconds = Double((ContinuousClock.now - start).nanosecondCount) / 1e9
            }
            report(comparison)
        }
        waitForKeys()
    }

    /// Compares the list in use with the keys that are enrolled until then, unless another list
    /// comes.
    private func waitForKeys() {
        let number = state.withLock(\.pause)
        queue.asyncAfter(deadline: .now() + Self.pause) { [weak self] in
            guard let self else { return }
            let list = state.withLock { state in
                state.pause == number && !state.isEnded ? state.done?.list : nil
            }
            if let list { compare(with: list) }
        }
    }

    /// The next list, and the comparison that it goes on with; `nil` when there is no list.
    private func next() -> (KnownStatusList, Done?)? {
        state.withLock { state in
            guard let list = state.list, !state.isEnded else {
                state.isRunning = false
                return nil
            }
            let isGoingOn = state.done.map { done in
                list.list == done.list.list && !(done.isWithholding && list.date > done.list.date)
            }
            return (list, isGoingOn == true ? state.done : nil)
        }
    }

    /// Compares all chains after a row; `false` when a newer list has come, or the gateway ends.
    private func compare(
        _ list: StatusList,
        _ comparison: inout ListComparison
    ) throws(StoreProblem) -> Bool {
        guard let archive = try context.store.archive() else { return true }
        defer { try? archive.close() }
        var told = 0
        var hasMore = true
        while hasMore {
            guard state.withLock({ $0.list?.list == list && !$0.isEnded }) else { return false }
            hasMore = try archive.compare(
                &comparison,
                with: { digits in
                    list[CertificateSerial(written: digits)].map { "\(digits) \($0)" }
                },
                now: context.wallSeconds,
                by: Self.actor
            ) { keys in
                count(keys)
                for key in keys.prefix(Self.toldMax - told) { tell(key) }
                told = min(told + keys.count, Self.toldMax)
            }
        }
        return true
    }

    private func count(_ keys: [ListedKey]) {
        state.withLock { state in
            let revoked = keys.count { $0.change.entry != nil }
            state.facts.revoked &+= UInt64(revoked)
            state.facts.restored &+= UInt64(keys.count - revoked)
        }
    }

    private func retry(after failures: Int, _ error: StoreProblem) {
        let pause = Self.pauses.pause(after: failures, random: RandomBytes.word())
        if failures == 1 {
            context.log.error(
                """
                the enrolled keys could not be compared with Google's status list, \(error); it \
                is tried again
                """
            )
        }
        queue.asyncAfter(deadline: .now() + DispatchTimeInterval(pause)) { [weak self] in
            self?.run(failures: failures)
        }
    }

    private func tell(_ key: ListedKey) {
        let name = key.keyID.logName
        switch key.change.entry {
        case let entry?:
            context.log.notice(
                "key \(name) is revoked: Google's status list has its certificate \(entry)"
            )
        case nil:
            context.log.notice(
                "key \(name) is good again: Google's status list no longer has its certificate"
            )
        }
    }

    private func report(_ comparison: ListComparison) {
        guard comparison.revoked + comparison.restored > 0 else { return }
        context.log.notice(
            """
            Google's status list: of \(comparison.compared) keys, \(comparison.revoked) were \
            revoked and \(comparison.restored) are good again; `portcullis keys history` has all
            """
        )
    }
}
