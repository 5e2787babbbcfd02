import Services

/// Collects what the lanes answer; touched on the control queue only.
///
/// `@unchecked Sendable`: `add` is called on one queue, which `GatewayServer.gather` sees to.
final class LaneGathering: @unchecked Sendable {
    private var facts: [LaneFacts] = []
    private let count: Int
    private let completion: ([LaneFacts]) -> Void

    init(_ count: Int, completion: @escaping ([LaneFacts]) -> Void) {
        self.count = count
        self.completion = completion
    }

    func add(_ lane: LaneFacts) {
        facts.append(lane)
        guard facts.count == count else { return }
        completion(facts.sorted { $0.number < $1.number })
    }
}
