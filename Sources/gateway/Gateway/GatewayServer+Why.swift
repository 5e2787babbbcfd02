import Dispatch
import Proxy
package import Services

/// What the lanes remember of refusals.
extension GatewayServer: RefusalSource {
    /// How long the lanes are waited for.
    private static let patience = DispatchTimeInterval.seconds(2)

    package func refusals(
        named name: RefusalName?,
        _ completion: @escaping @Sendable ([RefusalNote]?) -> Void
    ) {
        let answer = FirstAnswer(completion)
        control.asyncAfter(deadline: .now() + Self.patience) { answer.give(nil) }
        control.async { [self] in
            // Looked through here: a lane hands over a copy, and serves its clients.
            let gathering = LaneGathering<RefusalMemory>(units.count) { memories in
                answer.give(memories.flatMap { $0.notes(named: name) })
            }
            for unit in units {
                unit.refusals { [control] memory in control.async { gathering.add(memory) } }
            }
        }
    }
}
