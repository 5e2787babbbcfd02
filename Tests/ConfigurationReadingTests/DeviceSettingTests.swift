import ConfigurationReading
import Cryptography
import Expectations
import Rules
import Testing

/// Rules that ask Apple about devices.
@Suite struct DeviceSettingTests {
    private static let p8 = P256PrivateKey().key.pem
    private static let key = "{ team: TEAM123456, key_id: ABC123DEFG, file: k.p8 }"
    private static let other = "{ team: TEAM654321, key_id: GFED321CBA, file: k.p8 }"

    private static func loaded(
        _ device: String,
        apple: String = "{ keys: [\(key)] }",
        mode: String = "enforce",
        app: String = "{ id: TEAM123456.shop, environments: [production] }"
    ) -> LoadedConfiguration {
        var files = MemoryFiles()
        files.files = [
            "p.yaml": """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            store: { sqlite: p.db }
            apps: [\(app)]
            default: { origin: o, mode: off }
            rules: [{ id: a, match: { path: /a }, mode: \(mode), device: \(device) }]
            apple: \(apple)
            """,
            "k.p8": p8,
        ]
        return ConfigurationLoader.load("p.yaml", files: files)
    }

    private static func device(_ text: String) throws -> DeviceRule? {
        let loaded = loaded(text)
        expectEqual(loaded.problems.map(\.text), [])
        let rule = try #require(loaded.configuration?.rules.rules.first)
        expectEqual(rule.asksDevice, rule.device != nil)
        return rule.device
    }

    @Test(arguments: [
        ("{ bit0: true }", ["1,0", "1,1"]), ("{ bit1: false }", ["0,0", "1,0"]),
        ("{ bit0: true, bit1: true }", ["1,1"]),
        ("[{ bit0: true }, { bit1: true }]", ["0,1", "1,0", "1,1"]),
        ("[{ bit0: false, bit1: false }]", ["0,0"]),
    ])
    func `all parts of a condition have to hold, and one condition of a list`(
        condition: String,
        refused: [String]
    ) throws {
        let rule = try #require(try Self.device("{ refuse_if: \(condition) }"))
        expectEqual(rule.refused.map(\.text).sorted(), refused)
        #expect(rule.onError == .refuse && rule.timeout == .seconds(2))
    }

    @Test func `every value is taken`() throws {
        let text = "{ refuse_if: { bit0: true }, on_error: forward, timeout: 500ms }"
        let rule = try #require(try Self.device(text))
        #expect(rule.onError == .forward && rule.timeout == .milliseconds(500))
    }

    @Test(arguments: [
        (
            "{ timeout: 1s }",
            "device.refuse_if: found no such key; use refuse_if: { bit0: true }"
        ),
        ("{ refuse_if: {} }", "device.refuse_if: found no bit; use bit0: true | false, or bit1"),
        ("{ refuse_if: { bit2: true } }", "device.refuse_if.bit2: found an unknown key; use bit0"),
        ("{ refuse_if: { bit0: 1 } }", "device.refuse_if.bit0: found \"1\"; use true | false"),
        ("{ refuse_if: [] }", "device.refuse_if: found an empty list; use a list of conditions"),
        ("{ refuse_if: true }", "device.refuse_if: found \"true\"; use a mapping with bit0, bit1"),
        (
            "{ refuse_if: [{ bit0: true }, { bit0: false }] }",
            "device.refuse_if: found every device; use bits that some devices don't have"
        ),
        (
            "{ refuse_if: { bit0: true }, timeout: 1m }",
            "device.timeout: found \"1m\"; use a time with its unit (ms, s, m, h, d), 100ms…30s"
        ),
        (
            "{ refuse_if: { bit0: true }, on_error: allow }",
            "device.on_error: found \"allow\"; use refuse | forward"
        ),
    ])
    func `what is wrong is told with its place`(device: String, problem: String) {
        let texts = Self.loaded(device).problems.map(\.text)
        #expect(texts.contains { $0.contains("p.yaml:6: a.\(problem)") }, "\(texts)")
    }

    private static let flagged = "{ refuse_if: { bit0: true } }"

    @Test func `a rule can't ask without a key of the team`() {
        let bare = Self.loaded(Self.flagged, apple: "{ timeout: 5s }").problems.map(\.text)
        #expect(bare.count == 1 && bare[0].contains("a.device: found it without apple.keys"))
        let two = "{ keys: [\(Self.key), \(Self.other)] }"
        #expect(Self.loaded(Self.flagged, apple: two).problems.isEmpty)
        let app = "{ id: OLDPREFIX1.shop, environments: [production] }"
        // With one key there is one team, whatever the prefix of an old app is.
        #expect(Self.loaded(Self.flagged, app: app).problems.isEmpty)
        let strange = Self.loaded(Self.flagged, apple: two, app: app).problems.map(\.text)
        expectEqual(strange.count, 1)
        expectEqual(strange.first?.contains("it for OLDPREFIX1.shop, whose team has no key"), true)
    }

    @Test func `a rule that is off warns of what it would ask`() {
        let loaded = Self.loaded(Self.flagged, mode: "off")
        expectEqual(loaded.configuration?.rules.rules.first?.asksDevice, false)
        expectEqual(loaded.warnings.map(\.keyPath), ["a.device"])
    }

    @Test func `check says what is refused, and whose the bits are`() {
        let text = Check(Self.loaded(Self.flagged), file: "p.yaml").text
        #expect(text.contains("    devices refused whose bits 0 and 1 are 1,0 or 1,1\n"))
        #expect(
            text.contains("    device bits are the team's: all its apps on a device share them\n")
        )
        #expect(text.contains("    device bits not known within 2s: refused\n"))
    }
}
