import AppAttest
import Cryptography
import Expectations
import KeyStore
import Rules
import SoftwareAuthenticator
import Testing
import Verification

/// What a rule makes of Apple's risk metric.
@Suite struct RiskTests {
    private static func rule(
        _ mode: Mode = .enforce,
        _ edit: (inout RiskRule) -> Void = { _ in }
    ) -> Rule {
        var risk = RiskRule(max: 8, salt: "place-order/risk")
        edit(&risk)
        return Trial.rule(mode) { $0.risk = risk }
    }

    /// A key of a device with this metric, found so many days ago; `nil` for a metric that a
    /// receipt did not have.
    private static func key(
        in trial: Trial,
        _ metric: UInt32?,
        daysAgo: Int64 = 1,
        shape: DeviceShape = .beforeTwentySeven
    ) -> SoftwareKey {
        let key = Trial.device(shape: shape).makeKey()
        var state = ReceiptState()
        state.riskMetric = metric
        state.metricAt = trial.now.seconds - daysAgo * 86_400
        var record = KeyRecord(
            keyID: key.keyID,
            appID: Trial.appID,
            environment: .production,
            publicKey: key.publicKey,
            enrolledAt: 0
        )
        (record.receipt, record.receiptState) = ([1], state)
        trial.journal.add(record)
        return key
    }

    private static func verdict(
        _ metric: UInt32?,
        daysAgo: Int64 = 1,
        _ rule: Rule
    ) throws -> Verdict {
        var trial = try Trial()
        var key = key(in: trial, metric, daysAgo: daysAgo)
        return try trial.send(try trial.request(), by: &key, rule)
    }

    @Test(
        arguments: [
            (0, nil), (8, nil), (9, .riskExceeded), (1_000_000, .riskExceeded), (nil, nil),
        ] as [(UInt32?, Refusal?)]
    )
    func `a metric above the limit is marked, and passes`(metric: UInt32?, mark: Refusal?) throws {
        let verdict = try Self.verdict(metric, Self.rule())
        expectEqual(verdict.outcome, .pass)
        expectEqual(verdict.risk?.mark, mark)
        expectEqual(verdict.risk?.metric, metric.map { UInt16(min($0, 65_534)) })
    }

    @Test func `it is refused where the rule says so, before anything is consumed`() throws {
        let rule = Self.rule { $0.action = .refuse }
        try expectEqual(Self.verdict(8, rule).outcome, .pass)
        try expectEqual(Self.verdict(nil, rule).outcome, .pass)
        var trial = try Trial()
        var key = Self.key(in: trial, 9)
        let verdict = try trial.send(try trial.request(), by: &key, rule)
        expectEqual(verdict.outcome, .refuse(.riskExceeded))
        expectEqual(verdict.signer, key.keyID)
        try expectEqual(trial.counters(key), CounterState())
    }

    @Test func `an unknown or old metric is allowed, or counts as exceeded`() throws {
        let strict = Self.rule {
            $0.unknown = .refuse
            $0.action = .refuse
        }
        try expectEqual(Self.verdict(nil, strict).outcome, .refuse(.riskUnknown))
        try expectEqual(Self.verdict(3, daysAgo: 90, strict).outcome, .pass)
        try expectEqual(Self.verdict(3, daysAgo: 91, strict).outcome, .refuse(.riskUnknown))
        let marking = Self.rule { $0.unknown = .refuse }
        let marked = try Self.verdict(nil, marking)
        expectEqual(marked.outcome, .pass)
        expectEqual(marked.risk?.mark, .riskUnknown)
        // An old one that was too high is unknown too, and no longer held against the device.
        try expectEqual(
            Self.verdict(50, daysAgo: 91, Self.rule { $0.action = .refuse }).risk?.mark,
            nil
        )
    }

    @Test func `every other fault goes before it`() throws {
        let rule = Self.rule { $0.action = .refuse }
        var trial = try Trial([
            Trial.policy {
                $0.builds = BuildPolicy(
                    categories: [.appStore],
                    acceptsAbsentCategory: true,
                    bundleVersions: nil,
                    acceptsAbsentBundleVersion: true
                )
            }
        ])
        var key = Self.key(in: trial, 9, shape: .iOS27(category: .testFlight, bundleVersion: "1"))
        try expectEqual(
            trial.send(try trial.request(), by: &key, rule).outcome,
            .refuse(.categoryRefused)
        )
        trial = try Trial()
        key = Self.key(in: trial, 9)
        let request = try trial.request()
        try expectEqual(
            trial.send(request, by: &key, rule, damage: .signature).outcome,
            .refuse(.signatureMismatch)
        )
        trial.now = trial.now.advanced(bySeconds: 86_400)
        try expectEqual(trial.send(request, by: &key, rule).outcome, .refuse(.challengeExpired))
    }

    @Test func `nothing is noted by a rule that does not ask`() throws {
        try expectEqual(Self.verdict(50, Trial.rule()).risk, nil)
        try expectEqual(Self.verdict(50, Trial.rule()).outcome, .pass)
    }

    @Test func `a ramp from mark to a quarter refuses a quarter of the keys, and the same ones`()
        throws
    {
        var trial = try Trial(changesMax: 10_000)
        var keys = (0..<400).map { _ in Self.key(in: trial, 20) }
        func refused(_ action: RiskRule.Action, percent: String) throws -> Set<KeyID> {
            let share = try #require(Share(percent: percent))
            let rule = Self.rule {
                $0.action = action
                $0.rollout = Rollout(.fixed(share), salt: "place-order/risk")
            }
            var refused: Set<KeyID> = []
            for index in keys.indices {
                let verdict = try trial.send(try trial.request(), by: &keys[index], rule)
                expectEqual(verdict.risk?.mark, .riskExceeded)
                switch verdict.outcome {
                case .refuse(.riskExceeded): refused.insert(keys[index].keyID)
                case .pass: break
                default: Issue.record("\(verdict.outcome)")
                }
            }
            return refused
        }
        #expect(try refused(.mark, percent: "100%").isEmpty)
        #expect(try refused(.refuse, percent: "0%").isEmpty)
        let tenth = try refused(.refuse, percent: "10%")
        let quarter = try refused(.refuse, percent: "25%")
        #expect((60...140).contains(quarter.count))
        #expect(tenth.isSubset(of: quarter))
        try expectEqual(refused(.refuse, percent: "25%"), quarter)
        try expectEqual(refused(.refuse, percent: "100%").count, 400)
    }

    @Test func `the origin's field is a number or unknown, with the mark`() throws {
        try expectEqual(Self.verdict(7, Self.rule()).risk?.text, "7")
        try expectEqual(Self.verdict(9, Self.rule()).risk?.text, "9;mark=risk-exceeded")
        try expectEqual(Self.verdict(nil, Self.rule()).risk?.text, "unknown")
        let strict = Self.rule { $0.unknown = .refuse }
        try expectEqual(Self.verdict(nil, strict).risk?.text, "unknown;mark=risk-unknown")
    }
}
