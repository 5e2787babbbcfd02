import ConfigurationReading
import Dispatch
import KeyStore
import PostgreSQLKeyStore
import Rules
import Services
import Signatures
import Verification

extension Rollouts: RolloutTaking {
    /// The most changes that `/audit` shows: the last 50.
    private static let shownMax = 50
    /// The most changes that wait for the one that is being saved; further ones are refused.
    private static let waitingMax = 32

    package func take(
        _ call: RolloutRequest.Call,
        by: String,
        _ done: @escaping @Sendable (RolloutResult) -> Void
    ) {
        plane.perform { [self] in
            // The successor may have read the orders already, and owns the file afterwards.
            guard case .none = plane.upgrading else { return done(.upgrading) }
            guard state.value.waiting.count < Self.waitingMax else {
                return done(.unsaved("too many changes wait; this one is not taken"))
            }
            add(WaitingOrder(call: call, by: by, done: done))
        }
    }

    package func lastChanges(_ done: @escaping @Sendable ([[UInt8]]?) -> Void) {
        guard let fleet else { return keeper.lastChanges(atMost: Self.shownMax, done) }
        asking.async { [keeper] in
            do throws(JournalError) {
                done(try fleet.database.lastChanges(atMost: Self.shownMax).compactMap(\.line))
            } catch {
                // What this gateway has seen of them.
                keeper.lastChanges(atMost: Self.shownMax, done)
            }
        }
    }

    package func forecast(
        _ request: RolloutRequest,
        _ done: @escaping @Sendable (ForecastResult) -> Void
    ) {
        plane.perform { [self] in
            let now = UnixTime(seconds: plane.wallSeconds)
            let rules = plane.configuration.fileRules
            let version = fleet.map { _ in state.value.version }
            let asked = rules.rules.filter { request.rule == nil || $0.id == request.rule }
            guard !asked.isEmpty, let note = RolloutNote(at: now, by: "", why: "") else {
                return done(.impossible(.unknownRule))
            }
            let before = state.value.orders
            var after = before
            do throws(RolloutOrders.Fault) {
                _ = try after.take(request, note: note, rules: rules)
            } catch {
                return done(.impossible(error))
            }
            let changes = asked.map { rule in
                (
                    rule: rule, from: before.standing(of: rule).rule.refusedShare(at: now),
                    to: after.standing(of: rule).rule.refusedShare(at: now)
                )
            }
            guard changes.contains(where: { $0.to > $0.from }) else {
                return done(.known(nil, order: version))
            }
            state.value.consumers.lastHour(request.rule) { report in
                guard let report else { return done(.late) }
                let forecasts = changes.compactMap { change in
                    RolloutForecast(
                        change.rule.id,
                        report,
                        from: change.from,
                        to: change.to,
                        limit: change.rule.demands.fallback?.refused
                    )
                }
                done(
                    request.rule == nil
                        ? .knownOfAll(RolloutForecasts(forecasts), order: version)
                        : .known(forecasts.first, order: version)
                )
            }
        }
    }
}

extension Rule {
    fileprivate func refusedShare(at now: UnixTime) -> Share {
        mode == .enforce ? rollout.share(at: now) : .none
    }
}

extension FleetChange {
    /// The line of the audit; `nil` where a text is none that this program writes.
    fileprivate var line: [UInt8]? {
        FleetOrders.Change(self)?.change.line(order: version, gateway: note.gateway)
    }
}
