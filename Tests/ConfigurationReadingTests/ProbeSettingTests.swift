import ConfigurationReading
import Cryptography
import Expectations
import Testing

@Suite struct ProbeSettingTests {
    private static let rules = """
        rules:
          - { id: api, match: { path: /v1/** }, mode: off }
          - { id: health, match: { path: /health, method: POST }, mode: off }

        """

    private static func loaded(_ probes: String) -> LoadedConfiguration {
        load(InvalidConfigurationTests.base + rules + "probes: \(probes)\n")
    }

    @Test func `probes are off unless they have a path, and explain knows them`() throws {
        func explained(_ probes: String, _ path: String) throws -> String {
            let loaded = Self.loaded(probes)
            expectEqual(loaded.problems.map(\.text), [])
            let sketch = RequestSketch(method: "GET", url: path, headers: [])
            let configuration = try #require(loaded.configuration)
            return Explanation(sketch, configuration, now: UnixTime(seconds: 0)).text
        }
        for path in ["/livez", "/readyz"] {
            #expect(try explained("{ ready: off, live: off }", path).contains("rule default"))
        }
        let both = "{ live: /livez, ready: /readyz }"
        let itself = "answered by the gateway itself: "
        #expect(try explained(both, "/livez").contains(itself + "probe-live"))
        #expect(try explained(both, "/readyz").contains(itself + "probe-ready"))
        #expect(try explained(both, "/readyz/").contains("rule default"))
    }

    @Test(arguments: [
        ("{ live: /health }", "/health, the path of rule health, which no request would reach"),
        ("{ live: /a, ready: /a }", "/a, which is probes.live already"),
        ("{ ready: /.well-known/app-attest/x }", "which is among the gateway's own endpoints"),
        ("{ ready: /.well-known/app-attest }", "which is among the gateway's own endpoints"),
        ("{ live: livez }", "found \"livez\"; use off | a path of plain segments"),
        ("{ live: /a/* }", "found \"/a/*\"; use off | a path of plain segments"),
        ("{ live: / }", "found \"/\"; use off | a path of plain segments"),
        ("{ livez: /a }", "an unknown key"),
    ])
    func `a path that some request needs is refused`(probes: String, problem: String) {
        let loaded = Self.loaded(probes)
        #expect(loaded.configuration == nil)
        let texts = loaded.errors.map(\.text)
        expectEqual(texts.first?.contains(problem), true, "\(texts)")
    }

    @Test func `the path of a rule is refused after another rule's wildcard, too`() {
        let rules = """
            rules:
              - { id: other, match: { host: other.example.com, path: /** }, mode: off }
              - { id: health, match: { path: /health }, mode: off }
            probes: { live: /health }

            """
        let texts = load(InvalidConfigurationTests.base + rules).errors.map(\.text)
        expectEqual(texts.count, 1)
        expectEqual(texts.first?.contains("/health, the path of rule health"), true, "\(texts)")
    }

    /// Its requests are answered before a rule is looked for.
    @Test(arguments: [
        ("", "/.well-known/app-attest/challenges", "/.well-known/app-attest/"),
        ("", "/.well-known/app-attest-trial/**", "/.well-known/app-attest-trial/"),
        ("endpoints: /own\n", "/own/*", "/own/"),
    ])
    func `a rule for the gateway's own paths is refused`(
        more: String,
        path: String,
        own: String
    ) {
        let rules = "rules:\n  - { id: a, match: { path: \(path) }, mode: off }\n"
        let texts = load(InvalidConfigurationTests.base + more + rules).errors.map(\.text)
        let problem =
            "a.match: found \(path), which no request reaches: the gateway answers what is "
            + "below \(own); use a path outside it"
        expectEqual(texts.count, 1)
        expectEqual(texts.first?.contains(problem), true, "\(texts)")
        let around = "rules:\n  - { id: a, match: { path: /.well-known/** }, mode: off }\n"
        #expect(load(InvalidConfigurationTests.base + more + around).errors.isEmpty)
    }

    @Test func `a path that a rule's wildcard has is warned of`() throws {
        let loaded = Self.loaded("{ ready: /v1/ready }")
        #expect(loaded.configuration != nil)
        expectEqual(
            loaded.problems.map(\.text),
            [
                """
                p.yaml:9: warning: probes.ready: found /v1/ready, which rule api (* * /v1/**) \
                would forward; use a path that the API does not have, since the gateway answers it \
                itself
                """
            ]
        )
    }
}
