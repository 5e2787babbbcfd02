import ConfigurationReading
import Cryptography
import Expectations
import Testing

@Suite struct PlanSettingTests {
    private static func loaded(_ text: String) -> LoadedConfiguration {
        load(InvalidConfigurationTests.base + text)
    }

    private static let path = "/.well-known/app-attest/plan"

    @Test(arguments: [("", false), ("plan: off\n", false), ("plan: on\n", true)])
    func `a plan is served where the file says so, and explain knows it`(
        text: String,
        isServed: Bool
    ) throws {
        let loaded = Self.loaded(text)
        expectEqual(loaded.problems.map(\.text), [])
        let configuration = try #require(loaded.configuration)
        expectEqual(configuration.servesPlan, isServed)
        expectEqual((configuration.servedPlan != nil), isServed)
        let sketch = RequestSketch(method: "GET", url: Self.path, headers: [])
        let explained = Explanation(sketch, configuration, now: UnixTime(seconds: 0)).text
        expectEqual(explained.contains("answered by the gateway itself: plan"), isServed)
    }

    @Test func `check says to whom the plan tells what`() {
        let line = "plan     \(Self.path): anybody reads the hosts, paths and names of all rules\n"
        for (word, isServed) in [("on", true), ("off", false)] {
            let text = Check(Self.loaded("plan: \(word)\n"), file: "p.yaml").text
            expectEqual(text.contains(line), isServed)
        }
    }

    @Test(arguments: ["true", "yes", "{}", "/plan"])
    func `another word is refused`(word: String) {
        let loaded = Self.loaded("plan: \(word)\n")
        #expect(loaded.configuration == nil)
        expectEqual(loaded.errors.map(\.text).first?.contains("use on | off"), true)
    }

    @Test func `a plan that is too long to be served is refused, and may be off`() {
        let long = String(repeating: "things/", count: 16)
        let rules = (0..<1_000).map {
            "  - { id: rule-\($0), match: { path: /v1/\(long)\($0) }, mode: off }\n"
        }
        let text = "rules:\n" + rules.joined()
        #expect(Self.loaded(text + "plan: off\n").configuration != nil)
        let loaded = Self.loaded(text + "plan: on\n")
        #expect(loaded.configuration == nil)
        expectEqual(loaded.errors.map(\.text).first?.contains("found a plan of "), true)
    }
}
