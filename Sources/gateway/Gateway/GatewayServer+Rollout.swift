import ConfigurationReading
import Cryptography
import Dispatch
import Lanes
import Logging
import Proxy
package import Rules
package import Services
import Verification

// Rollouts that operators change while the gateway runs. One change is saved after the other; each
// takes effect when it is on disk.
extension GatewayServer {
    /// The orders in force, and the changes that wait.
    struct Rollouts {
        /// Changes that wait for the one that is being saved; more are refused.
        static let waitingMax = 32
        /// Changes that `/audit` tells: the last 50.
        static let shownMax = 50
        /// How long an answer waits for lanes that are busy: 2 s.
        static let patience = DispatchTimeInterval.seconds(2)

        struct Waiting {
            let call: RolloutWish.Call
            let by: String
            let done: @Sendable (RolloutResult) -> Void
        }

        struct Untold {
            /// How many lanes still have to take it.
            var left: Int
            let answer: @Sendable (_ areAllTold: Bool) -> Void
        }

        var book: RolloutBook
        /// `nil` without a store, and then no rule verifies.
        let file: RolloutFile?
        var waiting: [Waiting] = []
        var isSaving = false
        /// None is taken any more: they go over to the next process.
        var isClosed = false
        /// Called once nothing waits to be saved.
        var whenSaved: (@Sendable () -> Void)?
        /// Changes that are in force, and of which not all lanes know, by their number.
        var untold: [Int: Untold] = [:]
        var lastNumber = 0
        let queue = DispatchQueue(label: "portcullis.rollout")

        init(_ book: RolloutBook, _ configuration: GatewayConfiguration) {
            self.book = book
            file = RolloutFile(configuration)
        }
    }

    func saveNext() {
        guard !rollouts.isSaving else { return }
        guard !rollouts.waiting.isEmpty else {
            let saved = rollouts.whenSaved
            rollouts.whenSaved = nil
            saved?()
            return
        }
        let next = rollouts.waiting.removeFirst()
        let now = UnixTime(seconds: wallSeconds)
        guard let note = RolloutNote(at: now, by: next.by, why: next.call.why),
            let file = rollouts.file
        else {
            next.done(.impossible(.unknownRule))
            return saveNext()
        }
        var book = rollouts.book
        let change: RolloutBook.Change
        do throws(RolloutBook.Fault) {
            change = try book.take(next.call.wish, note, configuration.fileRules)
        } catch {
            next.done(.impossible(error))
            return saveNext()
        }
        rollouts.isSaving = true
        rollouts.queue.async { [self, book] in
            let result = Result { () throws(RolloutFile.Fault) in try file.save(book, change) }
            control.async { [self] in
                rollouts.isSaving = false
                switch result {
                case .success: takeEffect(book, change, next.done)
                case .failure(let fault) where note.isGuards:
                    // A full disk must not keep an app from working.
                    log.error("the guard's order holds until the next start: \(fault.text)")
                    takeEffect(book, change, next.done)
                case .failure(let fault):
                    log.error("a change of rollouts has no effect: \(fault.text)")
                    next.done(.unsaved(fault.text))
                }
                saveNext()
            }
        }
    }

    private func takeEffect(
        _ book: RolloutBook,
        _ change: RolloutBook.Change,
        _ done: @escaping @Sendable (RolloutResult) -> Void
    ) {
        rollouts.book = book
        let rule = change.rule ?? "all rules"
        let why = change.note.why.isEmpty ? "" : ": \(change.note.why)"
        log.notice("rollout of \(rule): \(change.from) → \(change.to), \(change.note.by)\(why)")
        let kind = change.note.isGuards ? Report.Mark.Kind.fall : .order
        let text = "\(rule): \(change.from) → \(change.to)"
        reporting.add(Report.Mark(kind, at: change.note.at.seconds, text))
        forgetGuardCounts(of: change.rule)
        rollouts.lastNumber += 1
        let number = rollouts.lastNumber
        rollouts.untold[number] = Rollouts.Untold(left: units.count) {
            done(.changed(change, areAllLanesTold: $0))
        }
        control.asyncAfter(deadline: .now() + Rollouts.patience) { [self] in
            rollouts.untold.removeValue(forKey: number)?.answer(false)
        }
        serveOrderedRules { [self] in laneTold(of: number) }
    }

    private func laneTold(of number: Int) {
        rollouts.untold[number]?.left -= 1
        guard rollouts.untold[number]?.left == 0 else { return }
        rollouts.untold.removeValue(forKey: number)?.answer(true)
    }

    /// Takes no more orders, not even of guards, and waits for those that are being saved. Blocks;
    /// not on the control queue.
    ///
    /// - Returns: the orders in force.
    func closeOrders(within time: DispatchTimeInterval) throws(UpgradeRefusal) -> RolloutBook {
        let saved = DispatchGroup()
        saved.enter()
        control.async { [self] in
            rollouts.isClosed = true
            rollouts.whenSaved = { saved.leave() }
            saveNext()
        }
        guard saved.wait(timeout: .now() + time) == .success else {
            throw UpgradeRefusal("an order about rollouts could not be saved in time")
        }
        return control.sync { rollouts.book }
    }

    /// Takes orders again: there was no upgrade.
    func reopenOrders() { control.async { self.rollouts.isClosed = false } }

    /// Says which orders take the place of what was just read.
    func warnOfOrders() {
        if let emergency = rollouts.book.emergency {
            log.warning("no rule refuses, by `rollout --all observe` (\(emergency.text))")
        }
        for problem in rollouts.book.problems(configuration) { log.warning("\(problem.text)") }
    }

    /// Has every lane go by the orders in force. `told` is called on the control queue for each
    /// lane that does.
    func serveOrderedRules(_ told: @escaping @Sendable () -> Void = {}) {
        configuration = configuration.ordered(by: rollouts.book)
        let (read, keys, issuer, sessions) = (configuration, keys, issuer, sessions)
        let settings = ProxySettings(read, servers, devices, originCertificates, book)
        for unit in units {
            unit.replaceRules(settings) {
                Judge(read, keys, issuer, sessions)
            } taken: { [control] in
                control.async(execute: told)
            }
        }
    }
}

extension GatewayServer: RolloutTaking {
    package func take(
        _ call: RolloutWish.Call,
        by: String,
        _ done: @escaping @Sendable (RolloutResult) -> Void
    ) {
        control.async { [self] in
            // The next process may have read the orders already, and has the file afterwards.
            guard case .none = upgrading else { return done(.upgrading) }
            guard rollouts.waiting.count < Rollouts.waitingMax else {
                return done(.unsaved("too many changes wait for the disk"))
            }
            rollouts.waiting.append(Rollouts.Waiting(call: call, by: by, done: done))
            saveNext()
        }
    }

    package func lastChanges(_ done: @escaping @Sendable ([[UInt8]]?) -> Void) {
        control.async { [self] in
            guard let file = rollouts.file else { return done([]) }
            rollouts.queue.async { done(file.lastChanges(atMost: Rollouts.shownMax)) }
        }
    }

    package func forecast(
        _ wish: RolloutWish,
        _ done: @escaping @Sendable (ForecastResult) -> Void
    ) {
        control.async { [self] in
            let now = UnixTime(seconds: wallSeconds)
            guard let id = wish.rule,
                let rule = configuration.fileRules.rules.first(where: { $0.id == id }),
                let note = RolloutNote(at: now, by: "", why: "")
            else { return done(wish.rule == nil ? .known(nil) : .impossible(.unknownRule)) }
            var book = rollouts.book
            let before = book.standing(of: rule).rule
            do throws(RolloutBook.Fault) {
                _ = try book.take(wish, note, configuration.fileRules)
            } catch {
                return done(.impossible(error))
            }
            let after = book.standing(of: rule).rule
            report(of: ReportScope(rule: id, windows: [.hour])) { report in
                guard let report else { return done(.late) }
                let forecast = RolloutForecast(
                    report,
                    from: before.refusedShare(at: now),
                    to: after.refusedShare(at: now),
                    limit: rule.demands.fallback?.refused
                )
                done(.known(forecast))
            }
        }
    }
}

extension Rule {
    /// The share for which it refuses.
    fileprivate func refusedShare(at now: UnixTime) -> Share {
        mode == .enforce ? rollout.share(at: now) : .none
    }
}
