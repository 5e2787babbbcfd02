import ConfigurationReading
import Cryptography
import Expectations
import HTTPWire
import Proxy
import Rules
import Testing

/// Where content goes before and after it was judged.
@Suite struct ContentRuleTests {
    private static func loaded(
        _ rule: String,
        server: String = "o:80",
        origin: String = "",
        devices: [String: UInt64] = [:],
        inMemory: Set<String> = [],
        readOnly: Set<String> = [],
        more: String = ""
    ) -> LoadedConfiguration {
        let text = """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["\(server)"]\(origin) } }
            apps: [{ id: TEAM123456.a, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: o, mode: off }
            rules: [{ id: a, match: { path: /a }, mode: enforce, \(rule) }]
            \(more)
            """
        return ConfigurationLoader.load(
            "p.yaml",
            files: MemoryFiles(
                files: ["p.yaml": text],
                devices: devices,
                inMemory: inMemory,
                readOnly: readOnly
            )
        )
    }

    private static let held = "sign: [body]"

    /// A configuration whose listeners decide as these lines say.
    ///
    /// - forwards: whether it has one more, which does not decide.
    private static func deciding(
        _ listeners: [String],
        forwards: Bool = false
    ) -> LoadedConfiguration {
        let lines = listeners.enumerated().map { index, listener in
            "  - { address: \"127.0.0.1:\(9000 + index)\", decides: \(listener) }\n"
        }
        let more = forwards ? "  - { address: \"127.0.0.1:8080\" }\n" : ""
        let text = """
            listen:
            \(lines.joined() + more)
            trusted_proxies: [127.0.0.1/32]
            origins: { o: { servers: ["o:80"] } }
            apps: [{ id: TEAM123456.a, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: o, mode: off }
            rules:
              - { id: a, match: { path: /a }, mode: enforce, sign: [body] }
              - { id: b, match: { path: /b }, mode: enforce, sign: [method] }
            """
        return ConfigurationLoader.load("p.yaml", files: MemoryFiles(files: ["p.yaml": text]))
    }

    @Test(arguments: ["auth_request", "forward_auth", "ext_authz", "ext_authz_grpc"])
    func `where the asking proxy sends the content, rules may sign it`(form: String) throws {
        let loaded = Self.deciding(["\(form), content: whole"])
        let decides = try #require(loaded.configuration).listeners[0].decides
        expectEqual(decides?.form.rawValue, form)
        expectEqual(decides?.content, .whole)
        let http2 = loaded.configuration?.listeners[0].http2
        expectEqual(http2, form == "ext_authz_grpc" ? .on : .off)
        #expect(!loaded.warnings.contains { $0.text.contains("content-unseen") })
    }

    @Test func `check warns where content does not come to one of several listeners`() throws {
        let loaded = Self.deciding(["ext_authz, content: whole", "forward_auth"])
        let configuration = try #require(loaded.configuration)
        expectEqual(
            loaded.warnings.map(\.text).filter { $0.contains("content-unseen") },
            [
                """
                p.yaml:3: warning: listen[1].decides: found it without content: whole, so that \
                rules which sign the content refuse every request there (content-unseen): a; use \
                content: whole beside decides where Traefik asks with forwardBody; Caddy can't \
                send content: have it forward such requests to a listener without decides
                """
            ]
        )
        for (path, isNamed) in [("/a", true), ("/b", false)] {
            let sketch = RequestSketch(method: "POST", url: "https://a.example\(path)", headers: [])
            let now = UnixTime(seconds: 1_797_292_800)
            let explained = Explanation(sketch, configuration, now: now)
            let line = "  refused at 127.0.0.1:9001 with 413: content-unseen\n"
            expectEqual(explained.text.contains(line), isNamed)
            let member = "\"content_unseen_at\": [\"127.0.0.1:9001\"]"
            expectEqual(explained.json.contains(member), isNamed)
        }
    }

    @Test func `rules may sign content that comes to a listener which forwards it`() throws {
        for form in ["auth_request", "forward_auth"] {
            let loaded = Self.deciding([form], forwards: true)
            try expectEqual(#require(loaded.configuration).listeners.count, 2)
            let warnings = loaded.warnings.map(\.text).filter { $0.contains("content-unseen") }
            expectEqual(warnings.count, 1)
            expectEqual(warnings.first?.hasPrefix("p.yaml:2: warning: listen[0].decides: "), true)
            #expect(Self.deciding([form]).configuration == nil)
        }
    }

    @Test func `content that is signed is held unless the rule says otherwise`() throws {
        let configuration = try #require(Self.loaded(Self.held).configuration)
        let expected = BodyRule.held(limit: .mebibytes(10), memory: .kibibytes(256))
        expectEqual(configuration.rules.rules[0].body, expected)
    }

    @Test(arguments: [
        (["/tmp": 1, "/var/tmp": 1, "/dev/shm": 2] as [String: UInt64], "/dev/shm"),
        (["/tmp": 1, "/var/tmp": 3, "/dev/shm": 2], "/var/tmp"),
        (["/tmp": 4, "/var/tmp": 3, "/dev/shm": 2], "/tmp"),
        (["/dev/shm": 2], "/dev/shm"),
    ])
    func `held content goes to another file system than the store`(
        folders: [String: UInt64],
        chosen: String
    ) throws {
        let loaded = Self.loaded(Self.held, devices: folders.merging(["": 1]) { $1 })
        try expectEqual(#require(loaded.configuration).spillFolder, chosen)
        #expect(loaded.problems.isEmpty)
    }

    @Test func `check warns of held content on the store's file system`() throws {
        let one: [String: UInt64] = ["": 1, "/tmp": 1, "/var/tmp": 1, "/dev/shm": 1]
        let byDefault = Self.loaded(Self.held, devices: one)
        try expectEqual(#require(byDefault.configuration).spillFolder, "/tmp")
        expectEqual(
            byDefault.warnings.map(\.text),
            [
                """
                p.yaml:4: warning: spill_folder: found /tmp on the store's file system, where held \
                content can leave it no room; use a folder on another file system, or a \
                limits.held_disk that leaves room
                """
            ]
        )
        let other: [String: UInt64] = ["": 1, "/tmp": 2, "/var/tmp": 1]
        let stated = Self.loaded(Self.held, devices: other, more: "spill_folder: /var/tmp")
        try expectEqual(#require(stated.configuration).spillFolder, "/var/tmp")
        expectEqual(
            stated.warnings.map(\.text).count { $0.hasPrefix("p.yaml:7: warning: spill") },
            1
        )
        // Where nothing can go to a file, nothing is said.
        for rule in ["sign: [method]", "sign: [body], body: { limit: 1KiB, memory: 1KiB }"] {
            #expect(Self.loaded(rule, devices: one).warnings.isEmpty)
        }
    }

    @Test func `a disk apart from the store is preferred to memory`() throws {
        let devices: [String: UInt64] = ["": 1, "/tmp": 2, "/var/tmp": 3, "/dev/shm": 4]
        let loaded = Self.loaded(Self.held, devices: devices, inMemory: ["/tmp", "/dev/shm"])
        let configuration = try #require(loaded.configuration)
        expectEqual(configuration.spillFolder, "/var/tmp")
        #expect(
            Check(loaded, file: "p.yaml").text.contains(
                """
                held     content beyond a rule's memory goes to /var/tmp, at most \
                limits.held_disk, 1GiB
                """
            )
        )
    }

    /// As in a container whose own root is read-only.
    @Test func `a folder that can't be written is not chosen`() throws {
        let devices: [String: UInt64] = ["": 1, "/tmp": 2, "/var/tmp": 3, "/dev/shm": 4]
        let loaded = Self.loaded(
            Self.held,
            devices: devices,
            inMemory: ["/tmp", "/dev/shm"],
            readOnly: ["/var/tmp"]
        )
        try expectEqual(#require(loaded.configuration).spillFolder, "/tmp")
    }

    @Test func `a folder in memory counts as memory, and check says so`() throws {
        let devices: [String: UInt64] = ["": 1, "/tmp": 1, "/var/tmp": 1, "/dev/shm": 2]
        func loaded(_ rule: String, more: String = "") -> LoadedConfiguration {
            Self.loaded(rule, devices: devices, inMemory: ["/dev/shm"], more: more)
        }
        let limits = try #require(loaded(Self.held).configuration).limits
        #expect(limits.filesAreMemory)
        #expect(limits.addressHeldMax == 16 << 20 && limits.keyHeldMax == 16 << 20)
        #expect(
            Check(loaded(Self.held), file: "p.yaml").text.contains(
                """
                held     content beyond a rule's memory goes to /dev/shm, which is in memory: it \
                counts as limits.held_memory, 64MiB
                """
            )
        )
        // One client alone must have room for what a rule takes.
        let large = "sign: [body], body: { limit: 40MiB }"
        try expectEqual(#require(loaded(large).configuration).limits.addressHeldMax, 40 << 20)
        expectEqual(
            loaded("sign: [body], body: { limit: 65MiB }").errors.map(\.text).first,
            """
            p.yaml:6: a.body.limit: found a limit of 65MiB with limits.held_memory of \
            64MiB for /dev/shm too, which is in memory; use a limit of at most 64MiB, or a \
            larger limits.held_memory, or a spill_folder on a disk
            """
        )
        let stated = loaded(Self.held, more: "limits: { address_held: 32MiB, key_held: 12MiB }")
        let chosen = try #require(stated.configuration).limits
        #expect(chosen.addressHeldMax == 32 << 20 && chosen.keyHeldMax == 12 << 20)
    }

    @Test func `check says in one line what a streamed rule relies on`() {
        let streamed = Self.loaded("sign: [body], body: { digest: streamed, limit: 2GiB }")
        let lines = Check(streamed, file: "p.yaml").text.split(separator: "\n")
        let line = lines.first { $0.contains("content streamed, at most 2GiB") } ?? ""
        #expect(line.contains("relies on the origin to discard incomplete requests"))
        for server in [
            "gunicorn", "uvicorn", "hypercorn", "granian", "cheroot", "mod_wsgi", "mod_php",
        ] {
            #expect(line.contains(server))
        }
        #expect(line.contains("held"))
        #expect(streamed.problems.isEmpty)
    }

    @Test func `check warns of streaming over a socket that has no reset`() {
        let rule = "sign: [body], body: streamed"
        let loaded = Self.loaded(rule, server: "unix:/run/o.sock")
        expectEqual(
            loaded.warnings.map(\.text),
            [
                """
                p.yaml:6: warning: a.body: found streamed to unix:/run/o.sock, where a \
                broken request ends without a reset; use held, or servers that are reached by TCP
                """
            ]
        )
        #expect(Self.loaded(Self.held, server: "unix:/run/o.sock").warnings.isEmpty)
    }

    /// A gRPC server runs a call when its message is whole; tried with grpcio.
    @Test func `streaming to an origin that speaks HTTP/2 is refused`() {
        let rule = "sign: [body], body: streamed"
        expectEqual(
            Self.loaded(rule, origin: ", http2: on").errors.map(\.text),
            [
                """
                p.yaml:6: a.body: found streamed with http2: on, where a gRPC server runs \
                a call before its end; use held, or an origin without http2
                """
            ]
        )
        #expect(Self.loaded(Self.held, origin: ", http2: on").errors.isEmpty)
    }

    @Test func `a limit that can never be held is refused`() {
        let large = "sign: [body], body: { limit: 2MiB }"
        for (key, size) in [("held_disk", "1MiB"), ("address_held", "1MiB"), ("key_held", "1MiB")] {
            let loaded = Self.loaded(large, more: "limits: { \(key): \(size) }")
            expectEqual(
                loaded.errors.map(\.text),
                [
                    """
                    p.yaml:6: a.body.limit: found a limit of 2MiB with limits.\(key) of \
                    1MiB; use a limit of at most 1MiB, or a larger limits.\(key)
                    """
                ]
            )
        }
        let inMemory = "sign: [body], body: { limit: 1MiB, memory: 1MiB }"
        #expect(Self.loaded(inMemory, more: "limits: { held_disk: 0B }").errors.isEmpty)
    }
}
