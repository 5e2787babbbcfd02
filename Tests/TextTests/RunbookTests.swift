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

    /// Found as a command that left `mode: "enforce"` as it was, and failed without other files.
    @Test(.enabled(if: Repository.hasPrograms))
    func `the runbook's command makes rules in each form observe`() async throws {
        let page = try Document("deploy/docs/runbook/turn-it-off.md")
        let block = try #require(page.blocks.last { $0.kind == "console" })
        let command = try #require(block.lines.first { $0.contains("sed") }).dropFirst(2)
        let session = try Session()
        defer { session.end() }
        let written = [
            "mkdir -p /etc/portcullis", "cat > /etc/portcullis/portcullis.yaml <<'END'",
            "default: { origin: shop, mode: 'enforce' }", "rules:",
            "  - { id: a, mode: enforce, match: { path: /a } }",
            "  - { id: b, match: { path: /b }, mode:   \"enforce\" }",
            "  - id: c", "    mode: enforce   # for all", "END",
        ]
        let printed = try await session.run([
            Step(commands: written, prints: [], line: 0),
            Step(commands: [String(command)], prints: [], line: 1),
            Step(
                commands: [
                    "grep -c 'mode: *observe' /etc/portcullis/portcullis.yaml",
                    "grep enforce /etc/portcullis/portcullis.yaml",
                ],
                prints: [],
                line: 2
            ),
        ])
        expectEqual(printed[1].filter { !$0.isEmpty }, [])
        expectEqual(printed[2].filter { !$0.isEmpty }, ["4"])
    }

    /// Found as a line that landed between the two lines of an entry.
    @Test(.enabled(if: Repository.hasPrograms))
    func `a second app is added to the shipped configuration as well`() async throws {
        let page = try Document("deploy/docs/runbook/second-app.md")
        let block = try #require(page.blocks.first { $0.kind == "console" })
        let command = try #require(block.lines.first { $0.contains("sed") }).dropFirst(2)
        let session = try Session()
        defer { session.end() }
        let printed = try await session.run([
            Step(
                commands: [
                    "mkdir -p /etc/portcullis",
                    "cp deploy/portcullis.yaml /etc/portcullis/portcullis.yaml",
                    String(command),
                    "grep -c 'com.example' /etc/portcullis/portcullis.yaml",
                    "portcullis check --offline /etc/portcullis/portcullis.yaml > check; echo $?",
                ],
                prints: [],
                line: 0
            )
        ])
        expectEqual(printed[0].filter { !$0.isEmpty }, ["2", "0"])
    }

    /// Found as `build`, which no line has.
    @Test func `a page that looks for a member of the access log names one that there is`() throws {
        let log = try Document("deploy/docs/access-log.md").lines.joined(separator: "\n")
        var count = 0
        for page in Repository.pages(of: "deploy") where page.contains("/runbook/") {
            for line in try Document(page).lines
            where line.contains("grep") || line.contains(" -g ") {
                for found in line.matches(of: /"([a-z_]+)":/) {
                    count += 1
                    #expect(log.contains("`\(found.1)`"), "\(page): \(line)")
                }
            }
        }
        #expect(count > 6)
    }

    /// Found as lines that print the usage when they are pasted.
    @Test func `a command of the runbook or an alert names the configuration`() throws {
        let pages = Repository.pages(of: "deploy").filter { $0.contains("/runbook/") }
        let verbs = /`portcullis (?:origins|fleet|rollout|keys|report|why) ([^`]+)`/
        var count = 0
        for page in pages + ["deploy/monitoring/alerts.yaml"] {
            for line in try Document(page).lines {
                for found in line.matches(of: verbs) where found.1.contains(/[A-Z]{3}|%|^[a-z]+$/) {
                    // `keys revoke` alone is the name of a command.
                    let isNamed = pages.contains(page) && !found.1.contains(" ")
                    count += 1
                    #expect(isNamed || found.1.contains("--config"), "\(page): \(found.0)")
                }
            }
        }
        #expect(count > 15)
    }

    /// Such a loop once ran for ever where a port was taken.
    @Test func `a loop of the tutorial ends with its gateway`() throws {
        let loops = try Document("README.md").lines.filter { $0.contains("; do sleep") }
        expectEqual(loops.count, 2)
        for loop in loops { #expect(loop.hasPrefix("while kill -0 $gateway && ! "), "\(loop)") }
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
