import ConfigurationReading
import Expectations
import Rules
import Testing

/// The operator's emergency exit: one word of a rule is changed, and nothing else.
@Suite struct ModeChangeTests {
    private static let rule = """
        rules:
          - id: orders
            match: { method: POST, path: /v1/orders }
            origin: shop
            mode: enforce
            rollout: { percent: 25% }
            apps: [TEAM123456.com.example.shop]
            sign: [method, target, body, challenge]
            headers: [idempotency-key]
            challenge: required
            next_challenge: true
            counter: { window: 64 }
            accept: [assertion, session]
            body: { digest: held, limit: 1MiB }
            on_error: forward
            unsupported: refuse
            risk: { max: 8, action: refuse, rollout: { percent: 25% } }
            allow_encoded: [slash]

        """

    @Test(arguments: [
        ("observe", ["rollout"]),
        (
            "off",
            [
                "rollout", "apps", "sign", "headers", "challenge", "next_challenge", "counter",
                "accept", "body", "on_error", "unsupported", "risk",
            ]
        ),
        (
            "deny",
            [
                "origin", "rollout", "apps", "sign", "headers", "challenge", "next_challenge",
                "counter", "accept", "body", "on_error", "unsupported", "risk", "allow_encoded",
            ]
        ),
    ])
    func `an enforced rule takes every other mode by the change of one word`(
        mode: String,
        idle: [String]
    ) {
        let text = InvalidConfigurationTests.base + Self.rule
        // A rule with a limit for a metric that nobody asks Apple for.
        func isOther(_ problem: Problem) -> Bool { !problem.found.contains("without apple.keys") }
        expectEqual(load(text).problems.filter(isOther).map(\.text), [])
        let changed = load(text.replacing("mode: enforce", with: "mode: \(mode)"))
        expectEqual(changed.errors.map(\.text), [])
        expectEqual(changed.configuration?.rules.rules.first?.mode.rawValue, mode)
        expectEqual(
            Set(changed.warnings.filter(isOther).map(\.text)),
            Set(
                idle.map { key in
                    """
                    p.yaml:\(line(of: key)): warning: orders.\(key): found it with mode: \
                    \(mode), where it has no effect; use it when the mode is changed \
                    back, or no \(key)
                    """
                }
            )
        )
    }

    private func line(of key: String) -> Int {
        let lines = (InvalidConfigurationTests.base + Self.rule).split(
            separator: "\n",
            omittingEmptySubsequences: false
        )
        return (lines.firstIndex { $0.hasPrefix("    \(key):") } ?? -1) + 1
    }

    @Test func `a default that denies keeps the origin that it had`() {
        let text = InvalidConfigurationTests.base
            .replacing(
                "default: { origin: shop, mode: observe }",
                with: "default: { origin: shop, mode: deny }"
            )
        let loaded = load(text)
        expectEqual(loaded.errors.map(\.text), [])
        expectEqual(loaded.warnings.map(\.keyPath), ["default.origin"])
    }

    @Test(arguments: ["", "# nothing yet\n"])
    func `an empty file of rules is called that`(text: String) {
        let loaded = load(
            InvalidConfigurationTests.base + "rules: rules/\n",
            files: ["rules/a.yaml": text]
        )
        expectEqual(
            loaded.errors.map(\.text),
            [
                "rules/a.yaml:1: found an empty file; use rules (- id: …), or no such file"
            ]
        )
    }
}
