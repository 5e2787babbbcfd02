import Expectations
import Signatures
import Testing

@testable import ConfigurationReading

/// What an author says who knows another proxy, and what the message says to use instead.
struct ForeignKeyTests {
    private func errors(_ yaml: String) -> [String] {
        load(InvalidConfigurationTests.base + yaml).errors.map(\.text)
    }

    private static let rows: [(yaml: String, use: String)] = [
        ("timeouts: { read: 5s }", "timeouts.read: found an unknown key; use head for a request's"),
        ("timeouts: { proxy-read: 5s }", "timeouts.proxy-read: found an unknown key; use first_b"),
        ("timeouts: { keepalive: 5s }", "timeouts.keepalive: found an unknown key; use idle for"),
        ("limits: { client_max_body_size: 1MiB }", "use body: { limit: 1MiB } in the rule"),
        ("limits: { maxconn: 5 }", "limits.maxconn: found an unknown key; use connections, or"),
        ("upstreams: {}", "upstreams: found an unknown key; use origins: {"),
        ("worker_processes: 4", "worker_processes: found an unknown key; use event_loops"),
        (
            "rules:\n  - { id: a, path: /a, mode: off, match: { path: /a } }",
            "p.yaml:7: a.path: found an unknown key; use match: { host"
        ),
        (
            "rules:\n  - { id: a, mode: off, match: { paths: [/a], path: /a } }",
            "p.yaml:7: a.match.paths: found an unknown key; use path: /v1/**"
        ),
    ]

    @Test(arguments: rows.indices)
    func `a key of another proxy is answered by the own one`(_ index: Int) {
        let row = Self.rows[index]
        let found = errors(row.yaml)
        #expect(found.count == 1 && found[0].contains(row.use), "\(found)")
    }

    @Test func `a certificate beside an address is told where it belongs`() {
        let yaml = InvalidConfigurationTests.base.replacing(
            "\"127.0.0.1:8080\"",
            with: "\"127.0.0.1:8080\", ssl_certificate: a.pem"
        )
        let found = load(yaml).errors.map(\.text)
        #expect(found.contains { $0.contains("use tls: { certificate: fullchain.pem") }, "\(found)")
    }

    /// Each would be shadowed by the own key.
    @Test func `no word of another proxy is an own key in its section`() {
        let schema = ConfigurationSchema()
        let sections = ["timeouts", "limits", "origins.*", "listen[]", "rules[]", ""]
        for section in sections {
            let prefix = section.isEmpty ? "" : section + "."
            let keys = schema.rows.map(\.key).filter { $0.hasPrefix(prefix) }
                .map { String($0.dropFirst(prefix.count)) }
                .filter { !$0.contains(".") && !$0.contains("[") }
            #expect(keys.count > 3, "\(section)")
            for key in keys { #expect(ForeignKey.use(for: key, among: keys) == nil, "\(key)") }
        }
    }

    private static let variables = [
        ("log: { access: \"${LOG_FILE}\" }", "log.access: found ${LOG_FILE}, which is not set"),
        ("spill_folder: /${TMP:-tmp}", "spill_folder: found ${TMP:-tmp}, which is no variable"),
        (
            "limits: { head: \"${HEAD}\" }",
            "limits.head: found ${HEAD} in a key that takes no variables"
        ),
    ]

    @Test(arguments: variables)
    func `a variable without a value is refused, not taken as a text`(
        _ yaml: String,
        _ problem: String
    ) {
        let found = errors(yaml)
        #expect(found.count == 1 && found[0].contains(problem), "\(found)")
    }

    @Test func `a test case may ask for what looks like a variable`() throws {
        var files = MemoryFiles()
        files.files["p.yaml"] = InvalidConfigurationTests.base
        files.files["cases.yaml"] = """
            - { request: "GET /${HOME}", expect: { rule: default } }
            """
        let loaded = ConfigurationLoader.load("p.yaml", files: files)
        let configuration = try #require(loaded.configuration)
        let test = RouteTest("cases.yaml", configuration, now: .init(seconds: 0), files: files)
        #expect(test.text.hasSuffix("1 of 1 pass\n"), "\(test.text)")
    }
}
