/// Collects what the lanes answer; touched on the control queue only.
///
/// `@unchecked Sendable`: `add` is called on one queue, which its owner sees to.
final class LaneGathering<Fact>: @unchecked Sendable {
    private var facts: [Fact] = []
    private let count: Int
    private let completion: ([Fact]) -> Void

    init(_ count: Int, completion: @escaping ([Fact]) -> Void) {
        self.count = count
        self.completion = completion
    }

    func add(_ fact: Fact) {
        facts.append(fact)
        guard facts.count == count else { return }
        completion(facts)
    }
}
