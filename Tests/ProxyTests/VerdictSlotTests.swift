import AppAttest
import Expectations
import KeyStore
import Testing
import Verification

@testable import Proxy

@Suite struct VerdictSlotTests {
    @Test(
        arguments: [
            (nil, nil, "none"), (.production, .apple, "genuine"),
            (.production, .android, "genuine"),
            (.development, .apple, "genuine"), (.test, .apple, "test"), (.test, .android, "test"),
        ] as [(KeyEnvironment?, DevicePlatform?, String)]
    )
    func `a request without proof is not labelled genuine, and has no platform`(
        environment: KeyEnvironment?,
        platform: DevicePlatform?,
        label: String
    ) {
        let slot = VerdictSlot.index(
            .refuse(.assertionMissing),
            isEnforced: true,
            environment: environment,
            platform: platform
        )
        let labels = Dictionary(uniqueKeysWithValues: VerdictSlot.labels(slot))
        expectEqual(
            labels,
            [
                "verdict": "refuse", "reason": "assertion-missing", "enforced": "true",
                "environment": label, "platform": platform?.rawValue ?? "none",
            ]
        )
    }

    @Test(arguments: [
        (Verdict.Dependency.store, "store-unavailable"), (.deviceCheck, "device-check-unavailable"),
    ])
    func `a party that fails is an error, and not a refusal`(
        party: Verdict.Dependency,
        reason: String
    ) {
        let slot = VerdictSlot.index(
            .failure(party),
            isEnforced: false,
            environment: .production,
            platform: .apple
        )
        let labels = Dictionary(uniqueKeysWithValues: VerdictSlot.labels(slot))
        #expect(labels["verdict"] == "error" && labels["reason"] == reason)
    }

    @Test func `every verdict has a slot of its own, and every slot labels of its own`() {
        let sources: [(KeyEnvironment?, DevicePlatform?)] = [
            (.production, .apple), (.production, .android), (.test, .apple), (.test, .android),
            (nil, nil),
        ]
        var slots: [Int] = []
        for outcome in [Verdict.Outcome.pass] + Refusal.allCases.map(Verdict.Outcome.refuse) {
            for isEnforced in [false, true] {
                for (environment, platform) in sources {
                    slots.append(
                        VerdictSlot.index(
                            outcome,
                            isEnforced: isEnforced,
                            environment: environment,
                            platform: platform
                        )
                    )
                }
            }
        }
        expectEqual(Set(slots).count, slots.count)
        #expect(slots.allSatisfy { (0..<VerdictSlot.count).contains($0) })
        let labels = slots.map { VerdictSlot.labels($0).map(\.1) }
        expectEqual(Set(labels).count, labels.count)
    }
}
