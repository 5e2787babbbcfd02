import HTTPWire
import JSONText
package import Rules
import Verification

/// Who changes rollouts while the gateway runs, on the operators' listener.
package protocol RolloutTaking: Sendable {
    /// Saves the change and has every lane take it. `done` is called once, on any thread, within a
    /// bounded time.
    ///
    /// - by: who asks, for the audit log.
    func take(
        _ call: RolloutWish.Call,
        by: String,
        _ done: @escaping @Sendable (RolloutResult) -> Void
    )
}

/// What has become of a wish.
package enum RolloutResult: Sendable {
    /// It is on disk.
    ///
    /// - areAllLanesTold: whether all lanes go by it already. The others are about to.
    case changed(RolloutBook.Change, areAllLanesTold: Bool)
    case impossible(RolloutBook.Fault)
    /// Nothing has changed, and why.
    case unsaved(String)
    /// Nothing has changed: another process is about to take over.
    case upgrading
}

/// `POST /rollout/change`, with a ``RolloutWish/Call`` as content.
struct RolloutService: Service {
    let rollouts: any RolloutTaking

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        do throws(JSONError) {
            let call = try RolloutWish.Call(request.content.span)
            return .later { [rollouts, caller = request.caller] completion in
                rollouts.take(call, by: caller) { completion(Self.result($0)) }
            }
        } catch {
            return .now(Self.refused(.refused(.requestMalformed), error.description))
        }
    }

    private static func result(_ result: RolloutResult) -> ServiceResult {
        switch result {
        case .changed(let change, let areAllLanesTold):
            var document = JSONWriter(.compact)
            document.object { out in
                out.member("rule", change.rule ?? "*")
                out.member("from", change.from)
                out.member("to", change.to)
                out.member("all_lanes", areAllLanesTold)
            }
            return ServiceResult(LocalResponse(.served, "application/json", document.line))
        case .impossible(.unknownRule): return ServiceResult(.fault(.noSuchRule))
        case .impossible(.verifiesNothing): return ServiceResult(.fault(.ruleVerifiesNothing))
        case .impossible(.full):
            return refused(
                .fault(.rolloutUnsaved),
                "\(RolloutBook.entriesMax) rules have an order; give some of them back to the file"
            )
        case .upgrading: return ServiceResult(.fault(.upgradeRunning))
        case .unsaved(let why): return refused(.fault(.rolloutUnsaved), why)
        }
    }

    private static func refused(_ outcome: LocalOutcome, _ why: String) -> ServiceResult {
        var details = LocalResponse.Details()
        details.list = ("problems", [why])
        return ServiceResult(LocalResponse(outcome, details))
    }
}

extension ServiceEntry {
    /// The call that changes rollouts.
    static func rollout(_ rollouts: any RolloutTaking) -> ServiceEntry {
        ServiceEntry(
            "rollout/change",
            [.post],
            takesContent: true,
            cost: .nothing,
            tellsCaller: true,
            access: .call,
            RolloutService(rollouts: rollouts)
        )
    }
}
