import Expectations
import Rules
import Testing

@testable import ConfigurationReading

/// Apps and origins in folders of files, as rules are.
struct FileFolderTests {
    private static let main = """
        listen: [{ address: "127.0.0.1:0" }]
        origins: origins/
        apps: ${FOLDER}
        store: { sqlite: p.db }
        default: { mode: deny }
        rules: [{ id: a, match: { path: /a }, origin: media, mode: enforce }]
        """

    private static let files = [
        "origins/20-shop.yaml": "shop: { servers: [\"s:80\"] }",
        "origins/100-media.yaml": "media:\n  servers: [\"m:80\"]\nmore: { servers: [\"n:80\"] }",
        "origins/.hidden.yaml": "nonsense", "origins/README.md": "nonsense",
        "apps/1.yaml": "- { id: TEAM123456.b, environments: [production] }",
        "apps/2.yaml": "- { id: TEAM123456.a, environments: [production] }",
    ]

    private static func load(_ more: [String: String] = [:]) -> LoadedConfiguration {
        let memory = MemoryFiles(
            files: files.merging(["p.yaml": main]) { $1 }.merging(more) { $1 },
            variables: ["FOLDER": "apps"]
        )
        return ConfigurationLoader.load("p.yaml", files: memory)
    }

    @Test func `files are read in lexical order, and each value keeps its place`() throws {
        let loaded = Self.load()
        expectEqual(loaded.problems.map(\.text), [])
        let configuration = try #require(loaded.configuration)
        expectEqual(configuration.origins.map(\.name), ["media", "more", "shop"])
        expectEqual(configuration.apps.map(\.id), ["TEAM123456.b", "TEAM123456.a"])
        let place = configuration.place(of: "origins.media.servers[0]")
        expectEqual(place.text, "origins/100-media.yaml:2")
        expectEqual(configuration.place(of: "apps[1].id").text, "apps/2.yaml:1")
        let memory = MemoryFiles(
            files: Self.files.merging(["p.yaml": Self.main]) { $1 },
            variables: ["FOLDER": "apps"]
        )
        let store = ConfigurationLoader.loadStore("p.yaml", files: memory).settings
        expectEqual(store?.apps.map(\.id), ["TEAM123456.b", "TEAM123456.a"])
    }

    @Test func `a folder and the values themselves are the same configuration`() throws {
        let folder = try #require(Self.load().configuration)
        let text = """
            listen: [{ address: "127.0.0.1:0" }]
            origins:
              media: { servers: ["m:80"] }
              more: { servers: ["n:80"] }
              shop: { servers: ["s:80"] }
            apps:
              - { id: TEAM123456.b, environments: [production] }
              - { id: TEAM123456.a, environments: [production] }
            store: { sqlite: p.db }
            default: { mode: deny }
            rules: [{ id: a, match: { path: /a }, origin: media, mode: enforce }]
            """
        let flat = try #require(Self.load(["p.yaml": text]).configuration)
        expectEqual(flat.changes(to: folder).map(\.text), [])
        expectEqual(flat.rulesDigest, folder.rulesDigest)
        let changed = Self.load(["origins/20-shop.yaml": "shop: { servers: [\"t:80\"] }"])
        let changes = try folder.changes(to: #require(changed.configuration)).map(\.text)
        expectEqual(changes, ["origins.shop.servers: s:80 → t:80"])
    }

    private static let faults: [(files: [String: String], problem: String)] = [
        (
            ["origins/30.yaml": "shop: { servers: [\"x:80\"] }"],
            """
            origins/30.yaml:1: origins.shop: found shop, which is already at \
            origins/20-shop.yaml:1; use another name
            """
        ),
        (
            ["apps/3.yaml": "- { id: TEAM123456.a, environments: [development] }"],
            """
            apps/3.yaml:1: apps[2].id: found TEAM123456.a, which is already at apps/2.yaml:1; use \
            each App ID once, with all its environments
            """
        ),
        (
            ["origins/30.yaml": "- { servers: [\"x:80\"] }"],
            """
            origins/30.yaml:1: found a list; use a mapping of origins: name: { servers: \
            [10.0.0.5:8080] }
            """
        ),
        (
            ["apps/3.yaml": "id: TEAM123456.c"],
            "apps/3.yaml:1: found a mapping; use a list of apps: - id: …"
        ),
        (
            ["apps/3.yml": ""], "p.yaml:3: apps: found \"3.yml\"; use the ending .yaml"
        ),
        (
            ["origins/30.yaml": "x: { servers: [\"x:80\"], hots: y }"],
            """
            origins/30.yaml:1: origins.x.hots: found an unknown key; use servers, host, \
            keep_fields, paths, proxy_protocol
            """
        ),
        (
            ["apps/3.yaml": ""],
            "apps/3.yaml:1: found an empty file; use apps (- id: …), or no such file"
        ),
    ]

    @Test(arguments: faults)
    func `a problem names the file`(_ files: [String: String], _ problem: String) {
        let found = Self.load(files).errors.map(\.text)
        #expect(found.count == 1 && found[0].hasPrefix(problem), "\(found)")
    }

    @Test func `a folder without files, none and no name are errors`() {
        for (folder, problem) in [
            ("origins: none", "found no such folder; use a folder of *.yaml files, or a mapping"),
            ("origins: \"\"", "found \"\"; use a folder of files with origins"),
            ("apps: /tmp", "found a folder without *.yaml files; use apps, or no apps key"),
            ("apps: none", "found no such folder; use a folder of *.yaml files, or a list of apps"),
        ] {
            let key = folder.prefix { $0 != ":" }
            let lines = Self.main.split(separator: "\n").map {
                $0.hasPrefix(key + ":") ? folder : String($0)
            }
            let found = Self.load(["p.yaml": lines.joined(separator: "\n")]).errors.map(\.text)
            #expect(found.contains { $0.contains(problem) }, "\(folder): \(found)")
        }
    }
}
