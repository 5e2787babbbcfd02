import Expectations
import Rules
import Testing

@testable import ConfigurationReading

@Suite struct GuardRuleTests {
    private static func loaded(
        _ guardText: String,
        mode: String = "enforce",
        more: String = ""
    ) -> LoadedConfiguration {
        load(
            """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            apps: [{ id: TEAM123456.a, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: o, mode: off }
            rules: [{ id: a, match: { path: /a }, mode: \(mode), guard: \(guardText) }]
            \(more)
            """
        )
    }

    @Test func `a share alone looks back five minutes, at a hundred installs or more`() throws {
        let loaded = Self.loaded("{ refused: 2% }")
        #expect(loaded.problems.isEmpty)
        let rule = try #require(loaded.configuration?.rules.rules.first)
        #expect(rule.demands.fallback == GuardRule(refused: try #require(Share(percent: "2%"))))
        let line =
            "falls back to observe when more than 2% of at least 100 installs are refused in 5m"
        #expect(rule.demandLines.contains(line))
    }

    @Test func `all that it says is taken`() throws {
        let loaded = Self.loaded("{ refused: 0.5%, of: installs, window: 1h, minimum: 1000 }")
        #expect(loaded.problems.isEmpty)
        let fallback = try #require(loaded.configuration?.rules.rules.first?.demands.fallback)
        expectEqual(fallback.refused.text, "0.5%")
        expectEqual(fallback.window, .seconds(3600))
        expectEqual(fallback.minimum, 1000)
    }

    @Test(arguments: [
        ("{ window: 5m }", "a.guard.refused: found no such key"),
        ("{ refused: 0% }", "use a share above 0%, below 100%"),
        ("{ refused: 100% }", "use a share above 0%, below 100%"),
        ("{ refused: 2 }", "without its unit; use 2%"),
        ("{ refused: 2%, of: requests }", "a.guard.of"),
        ("{ refused: 2%, window: 30s }", "1m…1h"),
        ("{ refused: 2%, minimum: 9 }", "10…1000000"),
        ("{ refused: 2%, command: x }", "found an unknown key"),
        ("2%", "a mapping with refused, of, window, minimum"),
    ])
    func `what it can't mean is an error with its place`(text: String, part: String) {
        let errors = Self.loaded(text).errors.map(\.text)
        expectEqual(errors.count, 1, "\(errors)")
        expectEqual(errors.first?.hasPrefix("p.yaml:6: "), true, "\(errors)")
        expectEqual(errors.first?.contains(part), true, "\(errors)")
    }

    @Test func `it is idle where nothing is verified, and waits where a rule observes`() {
        expectEqual(Self.loaded("{ refused: 2% }", mode: "off").warnings.count, 1)
        #expect(Self.loaded("{ refused: 2% }", mode: "observe").problems.isEmpty)
    }

    @Test func `a hook is a program by its path, with arguments`() throws {
        let loaded = Self.loaded(
            "{ refused: 2% }",
            more: #"hooks: { guard: [/bin/page, "-t", "a b $X"], timeout: 3s }"#
        )
        #expect(loaded.problems.isEmpty)
        let hooks = try #require(loaded.configuration?.hooks)
        expectEqual(hooks.onGuard, ["/bin/page", "-t", "a b $X"])
        expectEqual(hooks.timeout, .seconds(3))
        expectEqual(Self.loaded("{ refused: 2% }").configuration?.hooks, HookSettings())
    }

    @Test(arguments: [
        ("{ guard: page }", "found \"page\"; use a list of texts: an absolute path"),
        ("{ guard: [page] }", "hooks.guard[0]: found \"page\"; use an absolute path"),
        ("{ guard: [] }", "an empty list"),
        ("{ guard: [/p], timeout: 1h }", "1s…5m"),
        ("{ fallen: [/p] }", "found an unknown key"),
        ("{ guard: [/p, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16] }", "guard[16]"),
    ])
    func `a hook that can't be run is an error`(text: String, part: String) {
        let errors = Self.loaded("{ refused: 2% }", more: "hooks: \(text)").errors.map(\.text)
        expectEqual(errors.count, 1, "\(errors)")
        expectEqual(errors.first?.contains(part), true, "\(errors)")
    }
}
