import Telemetry

@testable import Services

extension AdminSnapshot {
    /// Two event loops, two rules with three slots each, numbers that can be told apart.
    static func sample(
        store: StoreFacts = StoreFacts(keys: 41, revokedKeys: 2, pendingCommits: 3),
        drainState: DrainState = .serving,
        lastReloadError: String? = nil
    ) -> AdminSnapshot {
        var tallies = [
            Tally(ruleCount: 2, verdictSlots: 3), Tally(ruleCount: 2, verdictSlots: 3),
        ]
        for index in tallies.indices {
            tallies[index].add(.requests, UInt64(index) + 5)
            tallies[index].addStatus(200)
            tallies[index].addVerdict(rule: 0, slot: 0)
            tallies[index].add(.verification, nanoseconds: 60_000)
            for rule in 0...index { tallies[index].addFirstByte(rule: rule, nanoseconds: 9_000) }
        }
        tallies[1].addStatus(403)
        tallies[1].addVerdict(rule: 1, slot: 2)
        var snapshot = AdminSnapshot(
            version: "1.2.3",
            configuration: ConfigurationFacts(
                generation: 7,
                lastReloadAtSeconds: 1_776_679_260,
                lastReloadError: lastReloadError,
                refusedReloads: 1
            ),
            loops: tallies.enumerated().map {
                LoopFacts(number: $0, openConnections: $0 + 10, tally: $1)
            },
            rules: [
                RuleFacts(id: "orders", mode: "enforce", rollout: "25%", origin: "shop"),
                RuleFacts(id: "default", mode: "observe", rollout: "100%", origin: "shop"),
            ],
            store: store
        )
        snapshot.startedAtSeconds = 1_776_679_200
        snapshot.uptime = .milliseconds(90_500)
        snapshot.verdictLabels = { slot in
            [
                ("verdict", slot == 0 ? "pass" : "refuse"),
                ("reason", slot == 0 ? "" : "key-unknown"),
                ("enforced", slot == 1 ? "true" : "false"), ("environment", "genuine"),
            ]
        }
        snapshot.drainState = drainState
        snapshot.droppedLogLines = 6
        snapshot.host = "gateway1"
        return snapshot
    }
}
