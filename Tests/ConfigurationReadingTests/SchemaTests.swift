import Encodings
import Expectations
import Foundation
import Testing

@testable import ConfigurationReading

@Suite struct SchemaTests {
    private typealias Setting = ConfigurationSchema.Setting

    private static let schema = ConfigurationSchema()
    private static let example = Result {
        try String(
            contentsOfFile: Repository.folder + "/rules/examples/portcullis.yaml",
            encoding: .utf8
        )
    }

    /// All settings, each with its key path; free names are `*`.
    private static func all(
        _ setting: Setting,
        _ path: String = ""
    ) -> [(path: String, setting: Setting)] {
        let members = setting.members.flatMap { key, member in
            all(member, path.isEmpty ? key : "\(path).\(key)")
        }
        return [(path, setting)] + members + setting.others.flatMap { all($0, path + ".*") }
            + setting.elements.flatMap { all($0, path + "[]") }
    }

    private static func setting(_ path: String) -> Setting? {
        all(schema.root).first { $0.path == path }?.setting
    }

    @Test func `the readers have looked at every key`() {
        let unknown = Self.all(Self.schema.root).filter(\.setting.isUnknown).map(\.path)
        expectEqual(unknown, [])
        #expect(Self.all(Self.schema.root).count > 300)
    }

    @Test func `every key has a meaning, once, in sentences that end`() {
        let rows = Self.schema.rows
        expectEqual(rows.filter { !$0.meaning.hasSuffix(".") }.map(\.key), [])
        expectEqual(rows.filter { $0.meaning.contains("..") }.map(\.key), [])
        let limits = Self.schema.limits
        #expect(limits.count > 45 && limits.allSatisfy { $0.standard != nil })
    }

    @Test func `the example has every key of the schema, and the schema every key of it`() throws {
        let text = try Self.example.get()
        // Keys of rules and of `default` are in the files of rules.
        let known = Set(
            Self.all(Self.schema.root).map(\.path)
                .filter { !$0.hasPrefix("rules[]") && !$0.hasPrefix("default.") }
                .compactMap { $0.split(separator: ".").last.map(String.init) }
                .map { $0.replacing("[]", with: "") }
        ).subtracting(["*"])
        let written = Set(
            text.matches(of: /(?m)(?:^[ #]*(?:- )?|[\x7B,] *)(\w+):/).map { String($0.1) }
        )
        #expect(known.count > 150)
        // Some are only named, in the comment of another one.
        let words = Set(text.split { !$0.isLetter && !$0.isNumber && $0 != "_" }.map(String.init))
        expectEqual(known.subtracting(words), [])
        // Names of origins, and words before a colon in comments.
        let rest = written.subtracting(known).subtracting(["shop", "media", "mode"])
        expectEqual(rest, [])
    }

    @Test func `the schema says what is mandatory, what is closed and what has bounds`() throws {
        expectEqual(Self.schema.root.mandatory, ["listen", "origins", "default"])
        try expectEqual(#require(Self.setting("listen[]")).mandatory, ["address"])
        try expectEqual(#require(Self.setting("listen[].tls")).mandatory, [])
        try expectEqual(#require(Self.setting("origins.*")).mandatory, ["servers"])
        // An app has an id, or is of Android.
        try expectEqual(#require(Self.setting("apps[]")).mandatory, [])
        try expectEqual(#require(Self.setting("apps[].versions")).mandatory, ["min"])
        try expectEqual(#require(Self.setting("rules[].mode")).text?.isClosed, true)
        try expectEqual(#require(Self.setting("event_loops")).text?.isClosed, false)
        try expectEqual(
            #require(Self.setting("challenges.capacity")).text?.form,
            .number(1024...1 << 24)
        )
        try expectEqual(#require(Self.setting("timeouts.idle")).text?.form, .duration)
        try expectEqual(#require(Self.setting("limits.head")).text?.form, .size)
        try expectEqual(#require(Self.setting("rules[].next_challenge")).text?.form, .flag)
    }

    @Test func `a setting that may be written in several ways has all of them`() throws {
        let body = try #require(Self.setting("rules[].body"))
        #expect(body.text != nil && body.members.map(\.key) == ["digest", "limit", "memory"])
        let sign = try #require(Self.setting("rules[].sign"))
        #expect(sign.text?.words == ["content", "challenge"] && sign.elements.count == 1)
        let server = try #require(Self.setting("origins.*.servers[]"))
        #expect(server.text != nil && server.members.count == 4)
        let condition = try #require(Self.setting("rules[].device.refuse_if"))
        #expect(condition.members.count == 2 && condition.elements.count == 1)
        let dated = try #require(Self.setting("rules[].rollout"))
        #expect(dated.members.count == 7 && dated.mandatory == [])
    }

    @Test func `the schema is JSON Schema of a configuration, or of a list of rules`() throws {
        let text = Self.schema.json.pretty
        let json = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        let definitions = try #require(json?["definitions"] as? [String: [String: Any]])
        let main = try #require(definitions["configuration"])
        #expect(main["required"] as? [String] == ["listen", "origins", "default"])
        #expect(main["additionalProperties"] as? Bool == false)
        let members = try #require(main["properties"] as? [String: [String: Any]])
        let limits = try #require(members["limits"]?["properties"] as? [String: [String: Any]])
        #expect(limits["fields"]?["maximum"] as? Int == 1000)
        #expect(limits["fields"]?["default"] as? Int == 100)
        expectEqual(
            limits["address_held"]?["description"] as? String,
            "Held content of one client address; then 429. Its default: a fourth of held_disk, so "
                + "that one address can't use it up. Allowed: a size with its unit (B, KiB, MiB, "
                + "GiB), 64KiB…1TiB."
        )
        let rule = try #require(definitions["rule"]?["properties"] as? [String: [String: Any]])
        #expect(rule["mode"]?["enum"] as? [String] == ["off", "observe", "enforce", "deny"])
        #expect(!text.contains(#""anyOf": []"#))
    }

    @Test func `a schedule and a server say all that is wrong with them at once`() {
        let loaded = load(
            """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { shop: { servers: [{ address: nowhere, weight: 0, backup: perhaps }] } }
            apps: [{ id: TEAM123456.a, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: shop, mode: off }
            rules:
              - id: a
                match: { path: /a }
                mode: enforce
                rollout: { from: yesterday, to: tomorrow, start: 1, end: 2 }
            """
        )
        let paths = Set(loaded.errors.map(\.keyPath))
        for key in ["address", "weight", "backup"] {
            #expect(paths.contains("origins.shop.servers[0].\(key)"), "\(key)")
        }
        for key in ["from", "to", "start", "end"] {
            #expect(paths.contains("a.rollout.\(key)"), "\(key)")
        }
    }
}
