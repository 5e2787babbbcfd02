import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

/// Bad releases, one after the other, whose requests come to all gateways of a fleet while
/// something befalls it: the guard has to stop each of them everywhere, once.
///
/// A key belongs to the one thread that sends.
final class FleetGuardLoad {
    /// The rule that has a guard.
    static let rule = """
        - id: guarded
          match: { path: /v1/guarded }
          mode: enforce
          sign: [method, target]
          challenge: none
          guard: { refused: 10%, of: installs, window: 1h, minimum: 20 }

        """
    private static let form = SigningForm.lines([.method, .target], headers: [])

    private let fleet: Fleet
    private let keys: [SoftwareKey]
    private(set) var releases = 0

    init(_ fleet: Fleet) throws {
        self.fleet = fleet
        keys = try fleet.imported(60)
    }

    /// Sends a bad release's requests until every gateway observes, while `fault` goes on.
    func release(during fault: @escaping () throws -> Void) throws {
        #expect(eventually { (try? falls()) == releases })
        let fault = Thread.Answer(fault)
        var isStopped = false
        eventually {
            // Once it is stopped everywhere, requests count nowhere.
            if !isStopped { send() }
            isStopped = (try? statuses().allSatisfy { $0 == 200 }) ?? false
            return isStopped && fault.isThere
        }
        try fault.value()
        // What comes after the stop is no second release.
        send()
        #expect(isStopped)
        releases += 1
        #expect(try eventually { try falls() == releases })
        // The operator goes on, and nothing of before counts.
        let isGiven = eventually {
            let answer = try? fleet.order(at: 0, #""rule":"guarded","to":"100%""#)
            return answer?.object?["order"] != nil
        }
        #expect(isGiven)
        #expect(try eventually { try statuses().allSatisfy { $0 == 401 } })
    }

    /// Each key once: 80, 15 and 5 % of the traffic, a quarter of it bad.
    private func send() {
        for (place, key) in keys.enumerated() {
            let share = place % 20
            let number = share < 16 ? 0 : share < 19 ? 1 : 2
            guard let gateway = fleet.member(min(number, fleet.count - 1)) else { continue }
            var key = key
            let request = SoftwareKey.Request(method: "GET", target: "/v1/guarded")
            let damage: AssertionDamage? = place % 4 == 0 ? .otherClientData : nil
            let proof = key.proof(of: request, signing: Self.form, damage: damage)
            // What a gateway that is killed or paused does not answer is sent again.
            _ = try? gateway.client().send(request, proof)
        }
    }

    /// What each gateway answers a request without a proof; 0 where it was killed.
    private func statuses() throws -> [Int] {
        try (0..<fleet.count).map { number in
            guard let gateway = fleet.member(number) else { return 0 }
            return try gateway.client().send("GET", "/v1/guarded").status
        }
    }

    /// The orders of guards.
    private func falls() throws -> Int {
        let count = try fleet.database.query(
            "SELECT count(*) FROM rollout_changes WHERE actor = 'guard'"
        )
        return count.first.flatMap { Int($0) } ?? 0
    }
}
