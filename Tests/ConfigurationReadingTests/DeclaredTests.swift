import Encodings
import Expectations
import Testing

@testable import ConfigurationReading

/// A section that no configuration has: all that is derived from declarations, from three of them.
private struct Kettle: Declared, Equatable {
    var name = ""
    var seconds: Int64 = 90
    var isLoud = false

    static let keys = Keys<Self> {
        Key("name", \.name, .file("a kettle's name"))
            .means("The name of the kettle.")
            .mandatory("name: blue")
            .needs(.restart)
        Key("time", \.seconds, .seconds(.seconds(1) ... .days(1)))
            .means("How long it boils.")
            .because("as long as the others")
        Key("loud", \.isLoud, .flag)
            .means("Whether it whistles.")
            .needs(.upgrade)
            .since("1.1")
    }.checked { reader, kettle in
        guard kettle.isLoud, kettle.seconds < 10 else { return }
        reader.error("loud", found: "a whistle before it boils", use: "a time of 10s or more")
    }
}

@Suite struct DeclaredTests {
    private static func stated(
        _ yaml: String,
        over kettle: Kettle = Kettle()
    ) -> (stated: Stated<Kettle>?, problems: [String]) {
        let log = ProblemLog()
        let bytes = Array(yaml.utf8)
        let node = SourceNode.read(bytes, file: "k.yaml", use: "a kettle", log: log)
        let stated = Stated(node, at: "kettle", over: kettle, log)
        return (stated, log.sorted.map(\.text))
    }

    @Test func `a declared mapping is read, and what it does not say keeps its value`() {
        let (stated, problems) = Self.stated("name: blue\ntime: 2m")
        expectEqual(problems, [])
        expectEqual(stated?.value, Kettle(name: "blue", seconds: 120, isLoud: false))
        expectEqual(stated?.located("time", \.seconds)?.place.text, "k.yaml:2")
        #expect(stated?.located("loud", \.isLoud) == nil)
        let before = Kettle(name: "red", seconds: 5, isLoud: false)
        expectEqual(Self.stated("name: blue", over: before).stated?.value.seconds, 5)
    }

    @Test func `all problems of a declared mapping are reported, each at its place`() {
        let (stated, problems) = Self.stated("time: 2d\nloud: perhaps\nlid: on")
        expectEqual(
            problems,
            [
                "k.yaml:1: kettle.name: found no such key; use name: blue",
                "k.yaml:1: kettle.time: found \"2d\"; use a time with its unit (ms, s, m, h, d), "
                    + "1s…1d",
                "k.yaml:2: kettle.loud: found \"perhaps\"; use true | false",
                "k.yaml:3: kettle.lid: found an unknown key; use name, time, loud",
            ]
        )
        // A value with a problem does not count.
        expectEqual(stated?.value, Kettle())
        #expect(stated?.located("time", \.seconds) == nil)
        expectEqual(
            Self.stated("{ name: blue, time: 5s, loud: true }").problems,
            ["k.yaml:1: kettle.loud: found a whistle before it boils; use a time of 10s or more"]
        )
        #expect(Self.stated("[blue]").stated == nil)
    }

    @Test func `the schema and the pages follow from the declarations`() throws {
        let schema = ConfigurationSchema { node, log in
            _ = Stated(node, at: "", over: Kettle(), log)
        }
        expectEqual(schema.root.mandatory, ["name"])
        expectEqual(
            schema.rows.map { [$0.key, $0.standard ?? "", $0.allowed, $0.meaning] },
            [
                [
                    "name", "", "a kettle's name (${NAME})",
                    "The name of the kettle. A change needs a restart.",
                ],
                [
                    "time", "90s", "a time with its unit (ms, s, m, h, d), 1s…1d",
                    "How long it boils. Its default: as long as the others.",
                ],
                [
                    "loud", "false", "true | false",
                    "Whether it whistles. A change needs an upgrade or a restart. Since 1.1.",
                ],
            ]
        )
        let members = try #require(schema.json["definitions"]?["configuration"]?["properties"])
        expectEqual(members["loud"]?["default"], .bool(false))
        expectEqual(members["time"]?["default"], .string("90s"))
        expectEqual(
            members["loud"]?["description"],
            .string(
                "Whether it whistles. A change needs an upgrade or a restart. Since 1.1. "
                    + "Allowed: true | false."
            )
        )
    }

    @Test func `a difference and what it needs follow from the declarations`() {
        let old = Kettle(name: "blue", seconds: 90, isLoud: false)
        let new = Kettle(name: "red", seconds: 60, isLoud: true)
        let changes = Kettle.keys.changes(from: old, to: new, at: "kettle")
        expectEqual(
            changes.map(\.text),
            [
                "kettle.name: blue → red, which needs a restart",
                "kettle.time: 90s → 1m",
                "kettle.loud: false → true, which needs an upgrade or a restart",
            ]
        )
        expectEqual(changes.map(\.needs).max(), .restart)
        expectEqual(Kettle.keys.changes(from: old, to: old, at: "kettle"), [])
    }

    @Test func `keys of an inner mapping need at least what the outer one needs`() {
        struct Kitchen: Declared {
            var kettle = Kettle()
            static let keys = Keys<Self> {
                Key("kettle", \.kettle, .mapping).means("The kettle.").needs(.upgrade)
            }
        }
        var new = Kitchen()
        (new.kettle.name, new.kettle.seconds) = ("red", 60)
        let changes = Kitchen.keys.changes(from: Kitchen(), to: new, at: "")
        expectEqual(changes.map(\.keyPath), ["kettle.name", "kettle.time"])
        expectEqual(changes.map(\.needs), [.restart, .upgrade])
    }
}
