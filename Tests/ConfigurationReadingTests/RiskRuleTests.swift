import Expectations
import Rules
import Testing

@testable import ConfigurationReading

@Suite struct RiskRuleTests {
    private static func loaded(_ risk: String, mode: String = "enforce") -> LoadedConfiguration {
        load(
            """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            apps: [{ id: TEAM123456.a, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: o, mode: off }
            rules: [{ id: a, match: { path: /a }, mode: \(mode), risk: \(risk) }]
            """
        )
    }

    @Test func `a limit alone marks, allows what is unknown, and looks back 90 days`() throws {
        let loaded = Self.loaded("{ max: 8 }")
        #expect(loaded.errors.isEmpty)
        let risk = try #require(loaded.configuration?.rules.rules.first?.risk)
        expectEqual(risk, RiskRule(max: 8, salt: "a/risk"))
        expectEqual(risk.action, .mark)
        expectEqual(risk.unknown, .allow)
        expectEqual(risk.daysMax, 90)
        expectEqual(
            loaded.configuration?.rules.rules.first?.demandLines.contains {
                $0.hasPrefix("risk metric at most 8") && $0.hasSuffix("higher ones are marked")
            },
            true
        )
    }

    @Test func `it has a rollout of its own, independent of the rule's`() throws {
        let text =
            "{ max: 0, unknown: refuse, action: refuse, max_age: 30d, rollout: { percent: 25% } }"
        let rule = try #require(Self.loaded(text).configuration?.rules.rules.first)
        let risk = try #require(rule.risk)
        expectEqual(risk.unknown, .refuse)
        expectEqual(risk.daysMax, 30)
        expectEqual(risk.rollout.text, "25% by key")
        #expect(risk.rollout.salt != rule.rollout.salt)
        expectEqual(rule.rollout.schedule, .fixed(.whole))
    }

    @Test func `of an age that is no number of days, the days count, which is told`() throws {
        let loaded = Self.loaded("{ max: 8, max_age: 36h }")
        let risk = try #require(loaded.configuration?.rules.rules.first?.risk)
        expectEqual(risk.daysMax, 1)
        let found = loaded.warnings.map(\.text).filter { $0.contains("max_age") }
        expectEqual(
            found,
            [
                "p.yaml:6: warning: a.risk.max_age: found 36h, of which 1d counts; use "
                    + "whole days"
            ]
        )
        let whole = Self.loaded("{ max: 8, max_age: 48h }").warnings
        #expect(whole.allSatisfy { !$0.keyPath.hasSuffix("max_age") })
    }

    @Test func `a limit for a metric that nobody asks Apple for is told`() {
        expectEqual(
            Self.loaded("{ max: 8 }").problems.map(\.text),
            [
                """
                p.yaml:6: warning: a.risk.max: found it without apple.keys, where only \
                keys import can bring a metric; use apple.keys and apple.receipts.renew: true, if \
                metrics are to be known
                """
            ]
        )
        #expect(
            Self.loaded("{ max: 8 }", mode: "off").warnings.allSatisfy {
                !$0.found.contains("apple.keys")
            }
        )
    }

    @Test(arguments: [
        ("{ }", "a.risk.max"), ("{ max: -1 }", "a.risk.max"),
        ("{ max: 65534 }", "a.risk.max"), ("{ max: 8, act: mark }", "a.risk.act"),
        ("{ max: 8, action: block }", "a.risk.action"),
        ("{ max: 8, unknown: mark }", "a.risk.unknown"),
        ("{ max: 8, max_age: 1h }", "a.risk.max_age"),
        ("{ max: 8, rollout: { percent: 5% } }", "a.risk.rollout"),
        (
            "{ max: 8, action: refuse, rollout: { percent: 5%, by: key } }",
            "a.risk.rollout.by"
        ),
        ("{ max: 8, action: refuse, rollout: { } }", "a.risk.rollout"),
        ("8", "a.risk"),
    ])
    func `what can't be meant is named`(risk: String, keyPath: String) {
        let errors = Self.loaded(risk).errors
        expectEqual(errors.count, 1, "\(errors.map(\.text))")
        expectEqual(errors.first?.keyPath, keyPath)
    }
}
