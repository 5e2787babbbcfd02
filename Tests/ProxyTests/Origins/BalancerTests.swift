import Expectations
import Testing

@testable import Proxy

@Suite struct BalancerTests {
    /// Chooses this often among servers of these weights; `nil` for one that is down.
    private func turns(_ count: Int, _ balance: Balance, _ weights: [Int?]) -> [Int] {
        var balancer = Balancer(balance, count: weights.count)
        return (0..<count).compactMap { affinity in
            balancer.choose(affinity: Balancer.mixed(UInt64(affinity))) { place in
                weights[place].map { weight in
                    let seed = Balancer.mixed(UInt64(place) &+ 1_000)
                    return Balancer.Candidate(weight: weight, load: 0, seed: seed)
                }
            }
        }
    }

    private func shares(_ turns: [Int], of count: Int) -> [Int] {
        (0..<count).map { place in turns.count { $0 == place } }
    }

    @Test func `equal servers are used in turn`() {
        expectEqual(turns(7, .roundRobin, [1, 1, 1]), [0, 1, 2, 0, 1, 2, 0])
    }

    @Test func `a server that is down has no turn, and the others keep theirs`() {
        expectEqual(turns(4, .roundRobin, [1, nil, 1]), [0, 2, 0, 2])
        #expect(turns(3, .roundRobin, [nil, nil]).isEmpty)
        #expect(turns(3, .leastRequests, [nil, nil]).isEmpty)
        #expect(turns(3, .hashKey, [nil, nil]).isEmpty)
    }

    @Test func `weights are shares, and the requests of a heavy server are spread`() {
        expectEqual(turns(7, .roundRobin, [5, 1, 1]), [0, 0, 1, 0, 2, 0, 0])
    }

    @Test func `the server with the fewest requests for its weight is chosen`() {
        var balancer = Balancer(.leastRequests, count: 3)
        var loads = [0, 0, 0]
        for _ in 0..<70 {
            let place = balancer.choose(affinity: 0) { place in
                Balancer.Candidate(weight: [4, 2, 1][place], load: loads[place], seed: 0)
            }
            loads[place ?? 0] += 1
        }
        expectEqual(loads, [40, 20, 10])
    }

    @Test func `idle servers of equal weight are used in turn by load`() {
        expectEqual(turns(6, .leastRequests, [1, 1, 1]), [0, 1, 2, 0, 1, 2])
    }

    @Test func `a hash shares by weight`() {
        let found = shares(turns(70_000, .hashKey, [4, 2, 1]), of: 3)
        for (share, expected) in zip(found, [40_000, 20_000, 10_000]) {
            #expect(abs(share - expected) < 1_000)
        }
    }

    @Test func `only the subjects of a server that goes are moved`() {
        let before = turns(10_000, .hashKey, [1, 1, 1, 1])
        let after = turns(10_000, .hashKey, [1, nil, 1, 1])
        for (old, new) in zip(before, after) where old != 1 { expectEqual(old, new) }
        let moved = zip(before, after).filter { $0 == 1 && $1 != 1 }.map(\.1)
        expectEqual(moved.count, before.count { $0 == 1 })
        // They are shared by all that are left.
        for share in shares(moved, of: 4) where share > 0 { #expect(share > 700) }
    }
}
