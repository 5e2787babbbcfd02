import Foundation
import HTTPWire
import Services
import Testing
import Verification

/// What has a table in the code has its place in the reference.
@Suite struct ReferenceTests {
    @Test func `every reason has its entry in the runbook`() throws {
        let runbook = try Document("deploy/README.md").prose
            .drop { $0 != "## Runbook by reason" }.dropFirst()
            .prefix { !$0.hasPrefix("## ") }
            .joined(separator: "\n")
        let reasons =
            Refusal.allCases.map(\.rawValue) + Malformed.Reason.allCases.map(\.rawValue)
            + OriginFailure.allCases.map(\.rawValue) + LocalFault.allCases.map(\.rawValue)
        #expect(reasons.count > 100)
        let absent = reasons.filter { !runbook.contains("`\($0)`") }
        #expect(absent == [])
    }

    @Test func `every key of the configuration has its entry`() throws {
        let reference =
            try Document("rules/README.md").prose.joined(separator: "\n")
            + Document("deploy/README.md").prose.joined(separator: "\n")
        let example = try String(
            contentsOf: Repository.folder.appending(path: "rules/examples/portcullis.yaml"),
            encoding: .utf8
        )
        let keys = Set(example.matches(of: /(?m)^ *-? *(\w+):/).map { String($0.1) })
            .subtracting(["shop", "media"])
        #expect(keys.count > 60)
        // Alone, or behind the section that it stands in.
        let absent = try keys.filter { key in
            !reference.contains(try Regex("`([\\w.*\\[\\]]+\\.)?\(key)[`:.]"))
        }
        #expect(absent == [])
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `every metric has its entry`() async throws {
        let text = try Document("deploy/README.md").prose.joined(separator: "\n")
        let session = try Session()
        defer { session.end() }
        let commands = [
            "cat > metrics.yaml <<'END'",
            #"listen: [{ address: "127.0.0.1:8080" }]"#,
            #"admin: { address: "127.0.0.1:9901" }"#,
            #"origins: { shop: { servers: ["127.0.0.1:8081"] } }"#,
            "default: { mode: deny }", "END",
            "portcullis serve metrics.yaml > access.log 2> gateway.log &",
            "wait='--retry 60 --retry-connrefused --retry-delay 1'",
            "curl -s $wait http://127.0.0.1:9901/metrics | sed -n 's/^# TYPE portcullis_//p'",
        ]
        let steps = [Step(commands: commands, prints: [], line: 0)]
        let names = try await session.run(steps)[0]
            .compactMap { $0.split(separator: " ").first.map(String.init) }
        #expect(names.count > 60)
        let absent = names.filter { !text.contains("`\($0)`") && !text.contains("`\($0){") }
        #expect(absent == [])
    }

    @Test func `every target has its place in the table of folders`() throws {
        let text = try Document("Sources/README.md").prose.joined(separator: "\n")
        let sources = Repository.folder.appending(path: "Sources")
        let files = FileManager.default
        let targets = try files.contentsOfDirectory(atPath: sources.path).flatMap { group in
            (try? files.contentsOfDirectory(atPath: sources.appending(path: group).path)) ?? []
        }
        .filter { !$0.contains(".") }
        #expect(targets.count > 20)
        #expect(targets.filter { !text.contains("`\($0)`") } == [])
    }
}
