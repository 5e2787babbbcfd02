import ConfigurationReading
import Expectations
import Testing

@Suite struct HostileYAMLTests {
    private func errors(_ text: String) -> [String] { load(text).errors.map(\.text) }

    @Test func `anchors and aliases are refused`() {
        let text = "a: &x 1\nb: *x\n"
        expectEqual(errors(text), ["p.yaml:1: a: found an anchor (&x); use the value itself"])
    }

    @Test(arguments: [("a", " "), ("-", " "), ("_", " "), ("a", "\u{85}"), ("a", "\u{2028}")])
    func `a bomb of aliases is refused before it is parsed`(name: String, space: String) {
        var text = "a0: &\(name)0 [x]\n"
        for level in 1...30 {
            let alias = "\(space)*\(name)\(level - 1)"
            text += "a\(level): &\(name)\(level) {?\(alias) : [\(alias),\(alias)]}\n"
        }
        expectEqual(errors(text), ["p.yaml:1: found aliases (*name); use the values themselves"])
    }

    @Test func `other asterisks are no aliases`() {
        let text = String(repeating: "# *-* *** *.com */x *, *\n", count: 20) + "a: 1\n"
        #expect(errors(text).allSatisfy { !$0.contains("aliases") })
    }

    @Test func `deep nesting is refused`() {
        expectEqual(
            errors(String(repeating: "[", count: 200) + String(repeating: "]", count: 200)),
            ["p.yaml:1: found too large a tree; use at most 100000 values, 32 levels deep"]
        )
        expectEqual(errors(String(repeating: "[", count: 50_000)).count, 1)
        expectEqual(errors(String(repeating: "- ", count: 50_000)).count, 1)
        expectEqual(errors(String(repeating: "{a: ", count: 50_000)).count, 1)
    }

    @Test func `a file beyond its bound is refused`() {
        let text = "# " + String(repeating: "x", count: 1 << 20)
        expectEqual(
            errors(text),
            [
                "p.yaml:1: found too large a file; use a readable YAML file of at most 1MiB"
            ]
        )
    }

    @Test func `too many values are refused`() {
        let text = "rules: [" + String(repeating: "1,", count: 100_001) + "]"
        expectEqual(errors(text).first?.contains("found too large a tree"), true)
    }

    @Test(arguments: [
        "", "# nothing", "a: b: c", "[", "\"", "a\u{0}b: 1", "--- \na: 1\n---\nb: 2\n",
        "!!binary x",
        "? [a]\n: 1\n", "key: |\n  text\n", "%YAML 9.9\n---\na: 1", "*a", "{a: 1, a: 2, a: 3}",
        "\u{FEFF}a: 1",
        "a: !<tag:x> 1", "@", "\t- a",
    ])
    func `odd texts are problems and nothing worse`(text: String) {
        let loaded = load(text)
        #expect(loaded.configuration == nil)
        #expect(!loaded.errors.isEmpty)
    }

    @Test func `a byte order mark before the text changes nothing`() {
        let text = "listen: [{ address: nowhere }]\nevent_loops: 1\nevent_loops: 2\nhoard: 1\n"
        expectEqual(errors("\u{FEFF}" + text), errors(text))
        #expect(errors(text).count > 3)
    }

    @Test func `bytes that are no UTF-8 are a problem`() {
        struct Bytes: ConfigurationFiles {
            func contents(of path: String, limit: Int) throws(FileFault) -> [UInt8] {
                [0x61, 0xFF]
            }
            func names(in folder: String) throws(FileFault) -> [String] { [] }
            func permissions(of path: String) throws(FileFault) -> UInt16 { 0o600 }
        }
        let loaded = ConfigurationLoader.load("p.yaml", files: Bytes())
        expectEqual(loaded.errors.map(\.found), ["bytes that are no UTF-8 text"])
    }

    // Found by fuzzing: lines were counted at LF alone, so the key was looked for where it was not.
    @Test(arguments: ["\r", "\u{85}", "\u{2028}", "\u{2029}", "\r\n", "\n"])
    func `a key that stands twice is told behind every line end that YAML knows`(end: String) {
        let lines = ["listen: []", "# é", "event_loops: 1", "event_loops: 2", ""]
        let text = lines.joined(separator: end)
        let found = errors(text).filter { $0.contains("event_loops: found the key twice") }
        let problem = "p.yaml:3: event_loops: found the key twice in one mapping; use it once"
        expectEqual(found, [problem])
    }

    @Test(arguments: ["!a event_loops: 2", "? !!int event_loops\n: 2"])
    func `a key is there twice with a tag, too`(second: String) {
        let found = errors("event_loops: 1\n\(second)\n").filter { $0.contains("the key twice") }
        expectEqual(found.count, 1)
        expectEqual(found.first?.contains("event_loops: found the key twice in one mapping"), true)
    }

    @Test func `no prefix of a good file crashes the loader`() {
        let text = """
            listen: [{ address: "127.0.0.1:8080", tls: { certificate: c, key: k } }]
            origins: { shop: { servers: ["10.0.0.5:8080"], host: 'x' } }
            default: { origin: shop, mode: off }
            rules:
              - id: "a"
                match: { host: "*.a.com", method: [GET], path: /a/** }
                mode: enforce
                rollout: { from: 2026-12-01, to: 2026-12-31, start: 1%, end: 100% }
            """
        for count in 0..<text.count { _ = load(String(text.prefix(count))) }
    }
}
