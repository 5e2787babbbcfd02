import Expectations
import Foundation
import LoopbackKit
import Testing

/// What pages of the runbook have an operator do on a host.
@Suite struct RunbookTests {
    /// Found as a command that changed nothing where each key has a line of its own.
    @Test(.enabled(if: Repository.hasPrograms))
    func `the runbook's command takes strict counters out of rules in either form`() async throws {
        let page = try Document("deploy/docs/runbook/counter-replayed.md")
        let block = try #require(page.blocks.first { $0.kind == "sh" })
        let rule = "match: { path: /v1/orders }, origin: shop, mode: enforce"
        let session = try Session()
        defer { session.end() }
        let written = [
            "mkdir -p /etc/portcullis/rules", "cat > /etc/portcullis/portcullis.yaml <<'END'",
            #"listen: [{ address: "127.0.0.1:8080" }]"#,
            #"origins: { shop: { servers: ["127.0.0.1:8081"] } }"#,
            "apps: [{ id: ABCDE12345.com.example.shop, environments: [production] }]",
            "store: { sqlite: portcullis.db }", "default: { mode: deny }", "rules: rules", "END",
            "cat > /etc/portcullis/rules/10-flow.yaml <<'END'",
            "- { id: last, \(rule), counter: strict }",
            "- { counter: strict, id: first, \(rule) }",
            "- { id: middle, counter:  strict, \(rule) }",
            "END",
            "cat > /etc/portcullis/rules/20-block.yaml <<'END'", "- id: block",
            "  match: { path: /v1/block }", "  origin: shop", "  counter: strict",
            "  mode: enforce",
            "- id: remark", "  match: { path: /v1/remark }", "  origin: shop", "  mode: enforce",
            "  counter: strict   # one after the other", "- id: windowed",
            "  match: { path: /v1/windowed }", "  origin: shop", "  mode: enforce",
            "  counter: { window: 32 }", "END", "systemctl() { echo $*; }",
        ]
        let printed = try await session.run([
            Step(commands: written, prints: [], line: 0),
            Step(commands: block.lines, prints: [], line: 1),
            Step(
                commands: [
                    "cat /etc/portcullis/rules/*.yaml | grep -c counter"
                ],
                prints: [],
                line: 2
            ),
        ])
        expectEqual(printed[1].filter { !$0.isEmpty }, ["reload portcullis"])
        expectEqual(printed[2].filter { !$0.isEmpty }, ["1"])
    }

    @Test func `a page that replaces the program has the path of the Debian package, too`() throws {
        for page in Repository.pages(of: "deploy") {
            let text = try Document(page).lines.joined(separator: "\n")
            guard text.contains("/usr/local/bin/portcullis") else { continue }
            #expect(text.contains("/usr/bin/portcullis"), "\(page)")
            #expect(text.contains("apt install"), "\(page)")
        }
    }

    /// Lines of the access log are in the same journal.
    @Test func `a page that reads the journal says how urgent`() throws {
        var count = 0
        for page in Repository.pages(of: "deploy") {
            for line in try Document(page).lines where line.contains("journalctl -u portcullis") {
                count += 1
                #expect(line.contains(" -p "), "\(page): \(line)")
            }
        }
        #expect(count > 12)
        let file = Repository.folder.appending(path: "deploy/portcullis.service")
        let unit = try String(contentsOf: file, encoding: .utf8)
        let service = try #require(unit.components(separatedBy: "\n[Service]\n").last)
        #expect(service.contains("\nLogRateLimitIntervalSec=0\n"))
    }
}
