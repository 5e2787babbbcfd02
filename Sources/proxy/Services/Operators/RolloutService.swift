import Encodings
import HTTPWire
package import Rules
import Verification

/// Changes rollouts while the gateway runs, on the operators' listener.
package protocol RolloutTaking: Sendable {
    /// Saves the change and gives it to every event loop. A change that refuses no more clients
    /// takes effect also where it can't be saved. `done` is called once, on any thread, within a
    /// bounded time.
    ///
    /// - by: the caller, for the audit log.
    func take(
        _ call: RolloutRequest.Call,
        by: String,
        _ done: @escaping @Sendable (RolloutResult) -> Void
    )

    /// Estimates a change from the last hour, and changes nothing. `done` is called once, on any
    /// thread, within a bounded time.
    func forecast(_ request: RolloutRequest, _ done: @escaping @Sendable (ForecastResult) -> Void)

    /// Hands over the last lines of the audit log, the oldest first; `nil` where it can't be read.
    /// `done` is called once, on any thread.
    func lastChanges(_ done: @escaping @Sendable ([[UInt8]]?) -> Void)
}

/// The estimate of a change that is not made yet.
package enum ForecastResult: Sendable {
    /// The forecast is `nil` where the change refuses no more clients.
    ///
    /// - order: the version of the fleet's orders from which it was made; `nil` without a fleet.
    case known(RolloutForecast?, order: Int64?)
    /// Of a change of all rules.
    case knownOfAll(RolloutForecasts, order: Int64?)
    case impossible(RolloutOrders.Fault)
    /// The event loops have not reported their counts in time.
    case late
}

/// The gateways that obey an order.
package enum RolloutReach: Equatable, Sendable {
    /// This one, which has no fleet.
    case gateway
    /// All of the fleet; with the version of its orders. The others obey within two seconds.
    case fleet(version: Int64)
    /// This one, until the database is back.
    case untilDatabase
}

/// The result of a request.
package enum RolloutResult: Sendable {
    /// The change is in force.
    ///
    /// - areAllTold: whether all event loops already obey it. The others soon will.
    /// - unsaved: why it is not on disk yet; `nil` where it is.
    case changed(RolloutOrders.Change, RolloutReach, areAllTold: Bool, unsaved: String?)
    /// Nothing has changed: the fleet has a newer order than the caller knows, and which.
    case stale(String)
    case impossible(RolloutOrders.Fault)
    /// Nothing has changed, and why.
    case unsaved(String)
    /// Nothing has changed: another process is about to take over.
    case upgrading
}

/// `POST /rollout/change` and `POST /rollout/forecast`, with a ``RolloutRequest/Call`` as content.
struct RolloutService: Service {
    /// The purpose of the call. The raw value is the path after `rollout/`.
    enum Purpose: String, CaseIterable {
        case change
        /// The call only asks which clients it would refuse.
        case forecast
    }

    let purpose: Purpose
    let rollouts: any RolloutTaking

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        do throws(JSONError) {
            let call = try RolloutRequest.Call(request.content.span)
            return .later { [purpose, rollouts, caller = request.caller] completion in
                switch purpose {
                case .change: rollouts.take(call, by: caller) { completion(Self.result($0)) }
                case .forecast: rollouts.forecast(call.request) { completion(Self.result($0)) }
                }
            }
        } catch {
            return .now(Self.refused(.refused(.requestMalformed), error.description))
        }
    }

    private static func result(_ result: ForecastResult) -> ServiceResult {
        switch result {
        case .known(let forecast?, let order):
            return ServiceResult(json: forecast.json(order: order))
        case .knownOfAll(let forecasts, let order):
            return ServiceResult(json: forecasts.json(order: order))
        case .known(nil, let order):
            return ServiceResult(json: .served) { out in
                out.member("confirm", "none")
                if let order { out.member("order", order) }
                out.array("lines") { _ in }
            }
        case .impossible(let fault): return impossible(fault)
        case .late: return ServiceResult(.fault(.gatherTimeout))
        }
    }

    private static func result(_ result: RolloutResult) -> ServiceResult {
        switch result {
        case .changed(let change, let reach, let areAllTold, let unsaved):
            return ServiceResult(json: .served) { out in
                out.member("rule", change.rule ?? "*")
                out.member("from", change.from)
                out.member("to", change.to)
                out.member("all_event_loops", areAllTold)
                if let unsaved { out.member("unsaved", unsaved) }
                switch reach {
                case .gateway: break
                case .fleet(let version): out.member("order", version)
                case .untilDatabase: out.member("pending", true)
                }
            }
        case .impossible(let fault): return impossible(fault)
        case .stale(let newer): return refused(.fault(.rolloutStale), newer)
        case .upgrading: return ServiceResult(.fault(.upgradeRunning))
        case .unsaved(let why): return refused(.fault(.rolloutUnsaved), why)
        }
    }

    private static func impossible(_ fault: RolloutOrders.Fault) -> ServiceResult {
        switch fault {
        case .unknownRule, .noSuchOrder: ServiceResult(.fault(.noSuchRule))
        case .verifiesNothing: ServiceResult(.fault(.ruleVerifiesNothing))
        case .full:
            refused(
                .fault(.rolloutUnsaved),
                "\(RolloutOrders.entriesMax) rules have an order; give some back to the file"
            )
        }
    }

    private static func refused(_ outcome: LocalOutcome, _ why: String) -> ServiceResult {
        ServiceResult(outcome, "problems", texts: [why])
    }
}

/// `GET /audit`: the last changes of rollouts, each as a line of the audit log.
private struct AuditService: Service {
    let rollouts: any RolloutTaking

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        .later { [rollouts] completion in
            rollouts.lastChanges { lines in
                guard let lines else { return completion(ServiceResult(.fault(.gatherTimeout))) }
                // Each line is a JSON object that the gateway has written.
                let list = lines.joined(separator: Array(",\n".utf8))
                let text = Array("{\"changes\": [\n".utf8) + list + Array("\n]}\n".utf8)
                completion(ServiceResult(json: text))
            }
        }
    }
}

extension ServiceEntry {
    /// The entry of `GET /audit`. It names the operators who have changed something, so it is
    /// served where clients are named, too.
    static func audit(_ rollouts: any RolloutTaking) -> ServiceEntry {
        ServiceEntry(
            "audit",
            [.get, .head],
            on: .init(access: .lookup),
            by: AuditService(rollouts: rollouts)
        )
    }

    /// The calls that change rollouts, or estimate a change.
    static func rollouts(_ rollouts: any RolloutTaking) -> [ServiceEntry] {
        RolloutService.Purpose.allCases.map { purpose in
            ServiceEntry(
                "rollout/\(purpose.rawValue)",
                [.post],
                on: .init(takesContent: true, tellsCaller: true, access: .call),
                by: RolloutService(purpose: purpose, rollouts: rollouts)
            )
        }
    }
}
