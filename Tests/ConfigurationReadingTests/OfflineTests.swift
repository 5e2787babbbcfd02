import Expectations
import Parties
import Rules
import Testing

@testable import ConfigurationReading

/// Configurations that are checked where what they name is absent.
struct OfflineTests {
    private static let text = """
        listen:
          - { address: "127.0.0.1:0", tls: { certificate: tls/a.pem, key: tls/a.key } }
        admin: { address: "127.0.0.1:0", token_file: token }
        origins:
          o:
            servers: ["o:80"]
            tls: { ca: tls/ca.pem, certificate: tls/c.pem, key: tls/c.key }
        apps:
          - { id: ABCDE12345.com.example.a, environments: [production] }
          - { id: ABCDE12345.com.example.t, environments: [test], test_root: root.pem }
        store: { sqlite: data/keys.db }
        spill_folder: spill
        apple: { keys: [{ team: ABCDE12345, key_id: ABC123DEFG, file: apple.p8 }] }
        google: { roots: google.pem }
        verdict: { jwt: { key: verdict.pem, audience: o } }
        proofs:
          jwt:
            kind: jwt
            field: X-A
            keys: { file: keys.json }
            issuer: i
            audience: a
            algorithms: [ES256]
          people: { kind: siteverify, field: X-B, service: turnstile, secret_file: people.txt }
          play: { kind: play-integrity, decryption_key: play.d, verification_key: play.v }
          played: { kind: play-integrity, field: X-C, service_account: account.json }
        default: { mode: deny }
        rules:
          - id: a
            match: { path: /a }
            origin: o
            mode: enforce
            apps: [ABCDE12345.com.example.a]
            accept: [assertion, jwt]
            also: [people]
            device: { refuse_if: { bit0: true } }
        """

    private static func load(
        _ text: String = text,
        _ more: [String: String] = [:],
        offline: Bool = true
    ) -> LoadedConfiguration {
        var files = MemoryFiles(files: more)
        files.files["p.yaml"] = text
        return ConfigurationLoader.load("p.yaml", offline: offline, files: files)
    }

    private static let absent: [(file: String, keyPath: String)] = [
        ("tls/a.pem", "listen[0].tls.certificate"), ("tls/a.key", "listen[0].tls.key"),
        ("token", "admin.token_file"), ("tls/ca.pem", "origins.o.tls.ca"),
        ("tls/c.pem", "origins.o.tls.certificate"), ("tls/c.key", "origins.o.tls.key"),
        ("root.pem", "apps[1].test_root"), ("data", "store.sqlite"), ("spill", "spill_folder"),
        ("apple.p8", "apple.keys[0].file"), ("google.pem", "google.roots"),
        ("verdict.pem", "verdict.jwt.key"), ("keys.json", "proofs.jwt.keys.file"),
        ("people.txt", "proofs.people.secret_file"), ("play.d", "proofs.play.decryption_key"),
        ("play.v", "proofs.play.verification_key"),
        ("account.json", "proofs.played.service_account"),
    ]

    @Test func `each absent file and folder is named with its key, and the rest is checked`() throws
    {
        let loaded = Self.load()
        expectEqual(loaded.errors.map(\.text), [])
        let configuration = try #require(loaded.configuration)
        let found = Set(loaded.assumptions.map(\.text))
        let expected = Set(Self.absent.map { "assumed: \($0.file) (\($0.keyPath))" })
        expectEqual(expected.subtracting(found), [])
        expectEqual(found.subtracting(expected), [])
        // What the files stand for is there, so that rules which need it are judged as usual.
        #expect(configuration.apps.map(\.isTest) == [false, true])
        expectEqual(configuration.apple.credentials.map(\.teamID), ["ABCDE12345"])
        expectEqual(configuration.proofs.count, 4)
        #expect(configuration.verdict?.key != nil)
        // Two loads don't differ.
        let again = try #require(Self.load().configuration)
        expectEqual(configuration.changes(to: again).map(\.text), [])
    }

    @Test func `without offline each of them is an error, and nothing is assumed`() {
        let loaded = Self.load(offline: false)
        #expect(loaded.configuration == nil && loaded.assumptions.isEmpty)
        // What needs rules that are right is not looked at.
        let places = Set(loaded.errors.map(\.keyPath))
        #expect(places.count >= 10)
        expectEqual(places.subtracting(Self.absent.map(\.keyPath)), [])
    }

    @Test func `what is there and wrong is an error, offline too`() {
        let files = [
            "root.pem": "no certificate", "keys.json": "{",
            "people.txt": "", "apple.p8": "no key", "account.json": "[]",
        ]
        let loaded = Self.load(Self.text, files)
        #expect(loaded.configuration == nil)
        let places = Set(loaded.errors.map(\.keyPath))
        let wrong = Self.absent.filter { files[$0.file] != nil }.map(\.keyPath)
        expectEqual(Set(wrong).subtracting(places), [])
        #expect(loaded.assumptions.allSatisfy { files[$0.name] == nil })
    }

    @Test func `a mistake is an error, and a folder of rules is never assumed`() {
        let mistake = Self.load(Self.text.replacing("mode: enforce", with: "mode: enfroce"))
        expectEqual(mistake.errors.map(\.keyPath), ["a.mode"])
        let main = """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            default: { mode: deny }
            """
        for key in ["rules", "apps", "origins"] {
            let origins = "{ o: { servers: [\"o:80\"] } }"
            let isOrigins = key == "origins"
            let loaded = Self.load(
                isOrigins ? main.replacing(origins, with: "none") : main + "\n\(key): none"
            )
            let found = loaded.errors.first { $0.keyPath == key }
            expectEqual(found?.found, "no such folder", "\(key)")
            #expect(loaded.configuration == nil)
        }
        #expect(Self.load("rules: [").configuration == nil)
    }

    @Test func `variables that are not set are assumed, each as another value`() throws {
        let text = """
            listen: [{ address: "${LISTEN}" }, { address: "0.0.0.0:${PORT}" }]
            admin: { address: "${ADMIN}" }
            origins:
              o: { servers: ["${ONE}", "${TWO}:80", "unix:${SOCKET}"], host: "${HOST}" }
            apps:
              - { id: "${APP_ONE}", environments: [production] }
              - { id: "${TEAM}.com.example.b", environments: [production] }
              - { android: "${PACKAGE}", signers: ["\(String(repeating: "ab", count: 32))"] }
            store: { postgresql: { address: "${DATABASE}", gateway: "${NAME}" } }
            trusted_proxies: ["${NET}"]
            google: { status_list: { url: "${LIST}" }, proxy: "${PROXY}" }
            default: { mode: deny }
            rules: [{ id: a, match: { path: /a }, origin: o, mode: enforce }]
            """
        let loaded = Self.load(text)
        expectEqual(loaded.errors.map(\.text), [])
        let configuration = try #require(loaded.configuration)
        let named = Set(loaded.assumptions.map(\.name))
        let names = [
            "LISTEN", "PORT", "ADMIN", "ONE", "TWO", "SOCKET", "HOST", "APP_ONE", "TEAM", "PACKAGE",
            "DATABASE", "NAME", "NET", "LIST", "PROXY",
        ]
        expectEqual(named, Set(names.map { "${\($0)}" }))
        expectEqual(Set(configuration.apps.map(\.id)).count, 3)
        expectEqual(Set(configuration.origins[0].servers.map(\.text)).count, 3)
        // Where the text has no variable that can be found a value for.
        let wrong = Self.load(text.replacing("\"${ONE}\"", with: "\"none ${ONE}\""))
        let problem = "${ONE}, for which nothing that is allowed here can be assumed"
        expectEqual(wrong.errors.map(\.found), [problem])
    }

    @Test func `a file that a variable names is assumed once`() {
        let text = Self.text.replacing("ca: tls/ca.pem", with: "ca: \"${CA}\"")
        let names = Self.load(text).assumptions.filter { $0.keyPath == "origins.o.tls.ca" }
        expectEqual(names.map(\.text), ["assumed: ${CA} (origins.o.tls.ca)"])
    }
}
