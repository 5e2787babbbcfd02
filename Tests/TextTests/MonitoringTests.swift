import Expectations
import Foundation
import LoopbackKit
import Testing

/// The alert rules and the dashboard in `deploy/monitoring`.
@Suite struct MonitoringTests {
    private static let promtool = ChildProcess.tool("promtool")
    private static let skipped: Comment =
        "promtool is in Debian's package prometheus: deploy/install-packages test"

    private static func text(_ name: String) throws -> String {
        let file = Repository.folder.appending(path: "deploy/monitoring/\(name)")
        return try String(contentsOf: file, encoding: .utf8)
    }

    /// What commands print beside a gateway that has a key store, an origin that is served, and
    /// some requests behind it.
    private func printed(_ commands: String...) async throws -> [String] {
        let session = try Session()
        defer { session.end() }
        let served = [
            "cat > monitored.yaml <<'END'",
            #"listen: [{ address: "127.0.0.1:8080" }]"#,
            #"admin: { address: "127.0.0.1:9901" }"#,
            #"origins: { shop: { servers: ["127.0.0.1:8081"] } }"#,
            "apps: [{ id: ABCDE12345.com.example.shop, environments: [production] }]",
            "store: { sqlite: monitored.db }", "default: { mode: deny }",
            "rules: [{ id: orders, match: { path: /v1/orders }, origin: shop, mode: enforce }]",
            "END", "portcullis serve monitored.yaml > access.log 2> gateway.log &",
            "wait='--retry 60 --retry-connrefused --retry-delay 1'",
            "curl -s $wait http://127.0.0.1:9901/metrics > first",
            "for path in v1/orders nothing; do curl -s http://127.0.0.1:8080/$path > answer; done",
        ]
        let steps = [
            Step(commands: served, prints: [], line: 0),
            Step(commands: commands, prints: [], line: 1),
        ]
        return try await session.run(steps)[1].filter { !$0.isEmpty }
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `every metric that an alert or the dashboard names exists`() async throws {
        let lines = try await printed(
            "curl -s http://127.0.0.1:9901/metrics | sed -n 's/^# TYPE //p'"
        )
        let shown = lines.compactMap { line -> (name: String, type: String)? in
            let words = line.split(separator: " ").map(String.init)
            return words.count == 2 ? (words[0], words[1]) : nil
        }
        #expect(shown.count > 60)
        let names = Set(
            shown.flatMap { name, type in
                type == "histogram" ? ["_bucket", "_sum", "_count"].map { name + $0 } : [name]
            }
        )
        for file in ["alerts.yaml", "alerts-test.yaml", "dashboard.json"] {
            // What the rules record themselves has colons in its name.
            let text = try Self.text(file).replacing(/\w+:\w+:\w+/, with: "")
            let named = Set(text.matches(of: /\b(?:portcullis|process)_\w+/).map { String($0.0) })
            #expect(named.count > 4, "\(file)")
            expectEqual(named.subtracting(names), [], "\(file)")
        }
    }

    @Test(.enabled(if: Repository.hasPrograms && promtool != nil, skipped))
    func `promtool finds nothing wrong with the metrics`() async throws {
        let promtool = try #require(Self.promtool)
        let lines = try await printed(
            "curl -s http://127.0.0.1:9901/metrics | \(promtool) check metrics; echo status $?"
        )
        expectEqual(lines, ["status 0"])
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `a reader of OpenMetrics finds the request by its exemplar`() async throws {
        let lines = try await printed(
            "admin=http://127.0.0.1:9901",
            "curl -s -H 'Accept: application/openmetrics-text' $admin/metrics > page",
            "tail -n 1 page",
            #"id=$(sed -n 's/.*"request_id":"\([0-9a-f]*\)".*/\1/p' answer); echo ${#id}"#,
            #"grep -c "_bucket{.*# {request_id=\"$id\"} " page"#
        )
        expectEqual(lines, ["# EOF", "32", "1"])
    }

    @Test(.enabled(if: promtool != nil, skipped))
    func `promtool finds nothing wrong with the alert rules, and they hold`() throws {
        let promtool = try #require(Self.promtool)
        let folder = Repository.folder.appending(path: "deploy/monitoring")
        for words in [
            ["check", "rules", "alerts.yaml"], ["test", "rules", "alerts-test.yaml"],
            ["check", "config", "prometheus.yaml"],
        ] {
            let outcome = try ChildProcess.run(promtool, words, input: "", folder: folder)
            expectEqual(outcome.status, 0, "\(outcome.printed) \(outcome.complained)")
        }
    }

    @Test func `each alert has a test in which it fires, and one in which it does not`() throws {
        let alerts = try Self.text("alerts.yaml").matches(of: /- alert: (\w+)/).map {
            String($0.1)
        }
        let tests = try Self.text("alerts-test.yaml")
            .matches(of: /alertname: (\w+)\n +exp_alerts:( \[\])?/)
            .map { (name: String($0.1), fires: $0.2 == nil) }
        for fires in [true, false] {
            let tested = Set(tests.filter { $0.fires == fires }.map(\.name))
            expectEqual(alerts.filter { !tested.contains($0) }, [], "fires: \(fires)")
        }
        expectEqual(Set(tests.map(\.name)).subtracting(alerts), [])
    }

    @Test func `the alerts of the runbook's first page are those of the file, as severe`() throws {
        let alerts = try Self.text("alerts.yaml").components(separatedBy: "- alert: ").dropFirst()
        let severities = try alerts.map { alert in
            let severity = try #require(alert.firstMatch(of: /severity: (\w+)/))
            return "\(alert.prefix { !$0.isNewline }) \(severity.1)"
        }
        let rows = try Document("deploy/docs/runbook/README.md").prose
            .compactMap { $0.wholeMatch(of: /\| \[`(\w+)`\]\(\w+\.md\) \|.*\| (\w+) \|/) }
            .map { "\($0.1) \($0.2)" }
        expectEqual(rows.sorted(), severities.sorted())
    }

    @Test func `every alert says what is wrong and what to do, and has its page`() throws {
        let text = try Self.text("alerts.yaml")
        let alerts = text.components(separatedBy: "- alert: ").dropFirst()
        #expect(alerts.count > 10)
        for alert in alerts {
            let name = String(alert.prefix { !$0.isNewline })
            let page = "deploy/docs/runbook/\(name).md"
            for part in ["summary: ", "action: ", "severity: ", "runbook_url: \(page)\n"] {
                #expect(alert.contains(part), "\(name)")
            }
            #expect(Repository.exists(Repository.folder.appending(path: page)), "\(name)")
        }
    }

    @Test func `the runbook's first page leads to every page of it`() throws {
        let folder = "deploy/docs/runbook/"
        let links = Set(try Document(folder + "README.md").links)
        let pages = Repository.pages(of: "deploy").filter { $0.hasPrefix(folder) }
            .map { String($0.dropFirst(folder.count)) }
        #expect(pages.count > 30)
        expectEqual(pages.filter { !links.contains($0) }, ["README.md"])
    }

    @Test func `the dashboard's panels have numbers of their own and stand beside each other`()
        throws
    {
        let object = try JSONSerialization.jsonObject(with: Data(Self.text("dashboard.json").utf8))
        let dashboard = try #require(object as? [String: Any])
        let panels = try #require(dashboard["panels"] as? [[String: Any]])
        #expect(panels.count > 20)
        expectEqual(Set(panels.compactMap { $0["id"] as? Int }).count, panels.count)
        var taken = Set<[Int]>()
        for panel in panels {
            let place = try #require(panel["gridPos"] as? [String: Int])
            let (x, y) = (try #require(place["x"]), try #require(place["y"]))
            let (w, h) = (try #require(place["w"]), try #require(place["h"]))
            #expect(x + w <= 24)
            for column in x..<x + w {
                for line in y..<y + h { #expect(taken.insert([column, line]).inserted) }
            }
            guard panel["type"] as? String != "row" else { continue }
            let targets = try #require(panel["targets"] as? [[String: Any]])
            #expect(!targets.isEmpty)
        }
    }
}
