import Expectations
import Foundation
import HTTPWire
import LoopbackKit
import Services
import Testing
import Verification

/// What has a table in the code has its place in the reference.
@Suite struct ReferenceTests {
    /// The rows of the tables of a text whose first column has this head, each as its cells by the
    /// heads of their columns.
    private static func tables(_ path: String, of head: String) throws -> [[String: String]] {
        var heads: [String] = []
        var rows: [[String: String]] = []
        for line in try Document(path).prose {
            guard line.hasPrefix("|") else {
                heads = []
                continue
            }
            let cells = line.replacing(#"\|"#, with: "/").split(separator: "|")
                .map { $0.trimmingCharacters(in: .whitespaces) }
            if heads.isEmpty {
                heads = cells
            } else if heads[0] == head, !cells[0].hasPrefix("---") {
                rows.append(Dictionary(zip(heads, cells)) { first, _ in first })
            }
        }
        return rows
    }

    /// The words of a cell that are written as code.
    private static func codes(_ cell: String?) throws -> [String] {
        let code = try Regex("`([a-z0-9-]+)`", as: (Substring, Substring).self)
        return (cell ?? "").matches(of: code).map { String($0.1) }
    }

    private static let outcomes: [LocalOutcome] =
        Refusal.allCases.map(LocalOutcome.refused) + OriginFailure.allCases.map(LocalOutcome.failed)
        + LocalFault.allCases.map(LocalOutcome.fault)

    @Test func `every reason has its entry in what operators do`() throws {
        let page = "rules/docs/reasons.md"
        let rows =
            try Self.tables(page, of: "reason").filter { $0["what you do"] != nil }
            // Those of tokens have a page of their own.
            + Self.tables("rules/docs/tokens.md", of: "reason")
        let named = try Set(rows.flatMap { try Self.codes($0["reason"]) })
        expectEqual(Set(Self.outcomes.map(\.reason)).subtracting(named), [])
        // What is no valid HTTP has one paragraph for all of it.
        let text = try Document(page).prose.joined(separator: "\n")
        let malformed = Malformed.Reason.allCases.map(\.rawValue)
        expectEqual(malformed.filter { !text.contains("`\($0)`") }, [])
    }

    private static let guide =
        "Sources/client/PortcullisClient/PortcullisClient.docc/Failures.md"
    /// The statuses of each reason: malformed requests share words with other outcomes.
    private static let statuses = Dictionary(
        grouping: outcomes + Malformed.Reason.allCases.map(LocalOutcome.malformed),
        by: \.reason
    ).mapValues { Set($0.map { "\($0.status)" }) }

    @Test func `each row about a reason is about one of the code, with its status`() throws {
        var count = 0
        for path in Repository.texts + [Self.guide] {
            for row in try Self.tables(path, of: "reason") {
                for reason in try Self.codes(row["reason"]) {
                    let statuses = try #require(Self.statuses[reason], "\(path): \(reason)")
                    guard let status = row["status"], status != "never sent" else { continue }
                    #expect(statuses.contains(status), "\(path): \(reason)")
                    count += 1
                }
            }
        }
        #expect(count > 150)
    }

    @Test func `a status before a reason is that of the code`() throws {
        var count = 0
        for path in Repository.texts + [Self.guide] {
            for line in try Document(path).prose {
                for found in line.matches(of: /\b([45]\d\d) `([a-z0-9-]+)`/) {
                    let (status, reason) = (String(found.1), String(found.2))
                    let statuses = try #require(Self.statuses[reason], "\(path): \(reason)")
                    #expect(statuses.contains(status), "\(path): \(reason)")
                    count += 1
                }
            }
        }
        #expect(count > 80)
    }

    @Test func `the limits that answer 429 are all in the runbook`() throws {
        let page = "deploy/docs/runbook/too-many-requests.md"
        let named = try Self.tables(page, of: "reason").flatMap { try Self.codes($0["reason"]) }
        let limits = Refusal.allCases.filter { $0.row.answer.status == 429 }.map(\.rawValue)
        expectEqual(Set(limits), Set(named))
    }

    /// The table is measured, by `ClientScenarios`.
    @Test func `the client's guide says of each refusal what it costs`() throws {
        let named = try Self.tables(Self.guide, of: "What fails").flatMap { row in
            try Self.codes(row["What fails"])
        }
        let sent = Refusal.allCases.filter { $0 != .preflight }.map(\.rawValue)
        expectEqual(Set(sent).subtracting(named), [])
    }

    @Test func `each reason of a request says in one row whether it obeys the mode of a rule`()
        throws
    {
        let rows = try Self.tables("rules/docs/observing.md", of: "reason").filter {
            $0["refused"] != nil
        }
        for row in rows {
            let refused = row["refused"] ?? ""
            #expect(refused.hasPrefix("always") || refused.hasPrefix("by the rule"), "\(row)")
        }
        let listed = try rows.flatMap { try Self.codes($0["reason"]) }
        expectEqual(Set(listed).count, listed.count, "a reason has two rows")
        // The endpoints answer the others, and no rule is asked.
        let refusals = Refusal.allCases.filter { $0.row.subject != .enrolment }.map(\.rawValue)
        expectEqual(Set(listed), Set(refusals + LocalFault.ofRequests.map(\.rawValue)))
        // What is no valid HTTP has one row for all of it; two of its reasons are a rule's, too.
        let both = Set(listed).intersection(Malformed.Reason.allCases.map(\.rawValue))
        expectEqual(both, ["method-case", "connection-nomination"])
    }

    @Test func `every key of the configuration has its entry`() throws {
        let reference =
            try (Repository.pages(of: "rules") + Repository.pages(of: "deploy"))
            .filter { !["rules/docs/keys.md", "rules/docs/rule-keys.md"].contains($0) }
            .flatMap { try Document($0).prose }
            .joined(separator: "\n")
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
        expectEqual(absent, [])
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `every metric has its entry`() async throws {
        let text = try Document("deploy/docs/monitoring.md").prose.joined(separator: "\n")
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
        expectEqual(absent, [])
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `the tables that are made from code are those of this build`() throws {
        let program = Repository.programs.appending(path: "portcullis").path
        let script = Repository.folder.appending(path: "deploy/reference").path
        let outcome = try ChildProcess.run(script, ["--check", program], input: "")
        expectEqual(outcome.status, 0, "deploy/reference mends: \(outcome.printed)")
        let pages = try Repository.texts.filter { path in
            try Document(path).prose.contains { $0.hasPrefix("<!-- portcullis reference ") }
        }
        #expect(pages.count >= 5)
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `the table of exit statuses has each command, and says what each status means`() throws {
        func rows(_ kind: String) throws -> [[String]] {
            let program = Repository.programs.appending(path: "portcullis").path
            let printed = try ChildProcess.run(program, ["reference", kind], input: "").printed
            return printed.split(separator: "\n").dropFirst(2).map { line in
                line.dropFirst(2).dropLast(2).components(separatedBy: " | ")
            }
        }
        let exits = try rows("exits")
        #expect(exits.count > 35)
        expectEqual(exits.filter { $0.count != 4 || $0.contains("") }, [])
        let commands = try rows("commands").map { row in
            row[0].replacing("`", with: "").split(separator: " ").prefix { word in
                word.allSatisfy { $0.isLetter && $0.isLowercase }
            }.joined(separator: " ")
        }
        expectEqual(Set(exits.map { $0[0].replacing("`", with: "") }), Set(commands))
    }

    @Test func `each topic of help is the name of one page`() {
        let pages = ["deploy", "rules", "Sources/client"].flatMap(Repository.pages)
        let topics = pages.compactMap { page in
            let parts = page.split(separator: "/")
            // The first page of a folder has the folder's name.
            return parts.last == "README.md" ? parts.dropLast().last : parts.last
        }
        #expect(topics.count > 60)
        expectEqual(Set(topics.map { $0.lowercased() }).count, topics.count)
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `help prints the page of a topic, and names those that may have been meant`() throws {
        let program = Repository.programs.appending(path: "portcullis").path
        let page = try ChildProcess.run(program, ["help", "turn-it-off"], input: "")
        let file = Repository.folder.appending(path: "deploy/docs/runbook/turn-it-off.md")
        expectEqual(page.status, 0)
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        let shown = lines.filter { !$0.hasPrefix("<!-- words: ") }
        expectEqual(page.printed.split(separator: "\n"), shown)
        #expect(shown.count < lines.count)
        let absent = try ChildProcess.run(program, ["help", "counter-replaid"], input: "")
        expectEqual(absent.status, 2)
        #expect(absent.complained.contains("no page counter-replaid, and none has the word"))
        #expect(absent.complained.contains("; did you mean counter-replayed?"), "\(absent)")
        let command = try ChildProcess.run(program, ["help", "serve"], input: "")
        #expect(command.printed.contains("USAGE: portcullis serve"))
        // Where both have the name, the page has its ending.
        let named = try ChildProcess.run(program, ["help", "store.md"], input: "")
        #expect(named.status == 0 && named.printed.hasPrefix("# Where are the keys"), "\(named)")
        #expect(absent.complained.contains(" store.md "), "\(absent)")
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `help finds the pages where install.md puts them, and else says where it looked`() throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-help-\(UUID().uuidString)")
        let bin = folder.appending(path: "bin")
        try FileManager.default.createDirectory(at: bin, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let program = bin.appending(path: "portcullis")
        try FileManager.default.copyItem(
            at: Repository.programs.appending(path: "portcullis"),
            to: program
        )
        let alone = try ChildProcess.run(program.path, ["help", "runbook"], input: "")
        let place = folder.path + "/share/portcullis/help"
        #expect(alone.complained.contains("(looked in \(place), and deploy/docs in "), "\(alone)")
        let page = Repository.folder.appending(path: "deploy/docs/install.md")
        let recipe = try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
            .filter { $0.contains("/usr/local/share/portcullis/help") }
            .map { $0.replacing("/usr/local/", with: folder.path + "/") }
        let script = ["cd \(Repository.folder.path)"] + recipe
        let copied = try ChildProcess.run(
            "/bin/sh",
            ["-ec", script.joined(separator: "\n")],
            input: ""
        )
        expectEqual(copied.status, 0, "\(copied)")
        let installed = try ChildProcess.run(program.path, ["help", "runbook"], input: "")
        #expect(installed.printed.hasPrefix("# Runbook\n"), "\(installed)")
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `a word that is no order is answered with the order that enforces`() throws {
        let program = Repository.programs.appending(path: "portcullis").path
        let words = ["rollout", "--config", "absent.yaml", "orders", "enforce"]
        let outcome = try ChildProcess.run(program, words, input: "")
        expectEqual(outcome.status, 2)
        #expect(outcome.complained.contains("100% enforces for all"), "\(outcome)")
    }

    private static func help(_ words: String...) throws -> String {
        let program = Repository.programs.appending(path: "portcullis").path
        let outcome = try ChildProcess.run(program, ["help"] + words, input: "")
        expectEqual(outcome.status, 0, "\(words): \(outcome)")
        return outcome.printed
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `help lists the pages about a word`() throws {
        for (word, pages) in [
            ("disk", ["PortcullisStoreFailing", "faults"]),
            ("rotate", ["database-password", "access-log"]), ("429", ["too-many-requests"]),
            ("certificate", ["PortcullisCertificateExpires", "certificates"]),
        ] {
            let lines = try Self.help(word).split(separator: "\n")
            for page in pages {
                #expect(lines.contains { $0.hasPrefix("  \(page)  ") }, "\(word): \(lines)")
            }
        }
        #expect(try Self.help("runbook").hasPrefix("# Runbook\n"))
        // The only name that has all words.
        #expect(try Self.help("latency").hasPrefix("# Latency went up\n"))
        #expect(try Self.help("password", "data").hasPrefix("# Rotate the database's password\n"))
        #expect(try Self.help("counter-replay").hasPrefix("# Everyone gets `counter-replayed`\n"))
    }

    @Test(
        .enabled(if: Repository.hasPrograms),
        arguments: [
            ("rollback", "Roll the binary back"), ("panic", "Turn it off now"),
            ("bypass", "Turn it off now"), ("clock skew", "The clock is wrong, or has jumped"),
            ("EMFILE", "New clients wait, since descriptors are short"),
            ("too many open files", "New clients wait, since descriptors are short"),
            ("ENOSPC", "The key store can't be read or written"),
            ("disk full", "The key store can't be read or written"),
            ("no space left", "The key store can't be read or written"),
            ("db down", "The database of the fleet is down"),
            ("drift", "Gateways of a fleet serve different rules"),
            ("segfault", "The gateway restarts again and again"),
            ("leaked token", "The admin token has leaked"),
            ("store full", "More requests wait for the key store than may"),
        ]
    )
    func `help finds a page by what people call it`(_ words: String, _ title: String) throws {
        let outcome = try ChildProcess.run(
            Repository.programs.appending(path: "portcullis").path,
            ["help"] + words.split(separator: " ").map(String.init),
            input: ""
        )
        #expect(outcome.printed.hasPrefix("# \(title)\n"), "\(outcome)")
        #expect(!outcome.printed.contains("<!-- words"))
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `help with a command names the pages about it`() throws {
        let upgrade = try Self.help("upgrade")
        #expect(upgrade.contains("USAGE: portcullis upgrade") && upgrade.contains("\nPAGES:\n"))
        #expect(upgrade.contains("\n  upgrade.md  ") && upgrade.contains("\n  roll-back  "))
        // What no page has is the command's.
        #expect(try Self.help("rollout", "xyzzy").contains("USAGE: portcullis rollout"))
    }

    /// A command or a page is meant where a word is its name.
    @Test(.enabled(if: Repository.hasPrograms))
    func `each heading of the runbook is found by each of its words`() throws {
        let folder = "deploy/docs/runbook/"
        var headings: [String: [(page: String, heading: String)]] = [:]
        for page in Repository.pages(of: "deploy") where page.hasPrefix(folder) {
            for line in try Document(page).prose where line.hasPrefix("#") {
                let words = line.lowercased().split { !$0.isLetter && !$0.isNumber }
                for word in words where word.count > 3 {
                    headings[String(word), default: []].append((page, line))
                }
            }
        }
        let program = Repository.programs.appending(path: "portcullis").path
        let usage = try ChildProcess.run(program, ["--help"], input: "").printed
        let commands = Set(usage.matches(of: #/(?m)^  ([a-z]+)  /#).map { String($0.1) })
        #expect(headings.count > 80 && commands.count > 15)
        let folders = ["deploy", "rules", "Sources/client"].flatMap(Repository.pages)
        let names = Set(folders.compactMap { $0.split(separator: "/").last?.dropLast(3) })
        for (word, found) in headings where !commands.contains(word) && !names.contains(word[...]) {
            let printed = try Self.help(word)
            for (page, heading) in found {
                let name = page.dropFirst(folder.count).dropLast(".md".count)
                let topic = name == "README" ? "runbook" : String(name)
                let isListed = printed.contains("\n  \(topic)  ")
                #expect(isListed || printed.contains(heading + "\n"), "\(word): \(printed)")
            }
        }
    }

    @Test func `what points to a page of the runbook names one`() throws {
        let sources = Repository.folder.appending(path: "Sources/gateway")
        let files = FileManager.default.enumerator(atPath: sources.path)?.allObjects ?? []
        var topics = Set<String>()
        for case let name as String in files where name.hasSuffix(".swift") {
            let text = try String(contentsOf: sources.appending(path: name), encoding: .utf8)
            // Long messages are broken between the words.
            let joined = text.replacing(/\\\n\s+/, with: "")
            topics.formUnion(
                joined.matches(of: /portcullis help (Portcullis\w+)/).map { String($0.1) }
            )
        }
        #expect(topics.count >= 4)
        let pages = Repository.pages(of: "deploy")
        expectEqual(topics.filter { !pages.contains("deploy/docs/runbook/\($0).md") }, [])
    }

    /// The paths of the admin listener as the text has them, with their kind: `POST /why`, `call`.
    private static func adminPaths() throws -> [String: String] {
        let section = try Document("deploy/docs/admin-listener.md").prose.prefix {
            !$0.hasPrefix("## ")
        }
        let rows = section.map {
            $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        let code = try Regex("`([^`]+)`", as: (Substring, Substring).self)
        var paths: [String: String] = [:]
        for row in rows where row.count == 3 && row[0].hasPrefix("`") {
            for path in row[0].matches(of: code) { paths[String(path.1)] = row[1] }
        }
        return paths
    }

    @Test(.enabled(if: Repository.hasPrograms))
    func `the text has the paths of the admin listener, of which probes alone take any Host`()
        async throws
    {
        let paths = try Self.adminPaths()
        let session = try Session()
        defer { session.end() }
        let set = [
            "cat > admin.yaml <<'END'",
            #"listen: [{ address: "127.0.0.1:8080" }]"#,
            #"admin: { address: "unix:a.sock", hosts: [gateway1.internal] }"#,
            #"origins: { shop: { servers: ["127.0.0.1:8081"] } }"#,
            "default: { mode: deny }", "END",
            "sed -i \"s|unix:|unix:$PWD/|\" admin.yaml",
            "portcullis serve admin.yaml > access.log 2> gateway.log &",
            "wait='--retry 60 --retry-connrefused --retry-delay 1'",
            "until test -S a.sock; do sleep 0.1; done",
            "curl -s $wait --unix-socket a.sock http://localhost/unknown",
        ]
        let asked = paths.sorted { $0.key < $1.key }.map { path, kind -> [String] in
            let words = path.split(separator: " ")
            // Calls would do what they say.
            let own = kind == "call" ? [] : ["gateway1.internal", "localhost", "[::1]"]
            return (["attacker.example"] + own).map { name in
                "curl -sg -o page -w '%{http_code} ' --unix-socket a.sock "
                    + "-X \(words.count == 2 ? "POST" : "GET") http://'\(name)'\(words.last ?? "")"
            }
        }
        let steps = ([set] + asked).enumerated().map { Step(commands: $1, prints: [], line: $0) }
        let printed = try await session.run(steps)
        // The answer to an unknown path lists all that are served.
        let served = printed[0].joined().matches(of: /"(\/[^"]*)"/).map { String($0.1) }
        #expect(served.count > 20)
        let written = paths.keys.map { $0.replacing("POST ", with: "") }
        expectEqual(Set(served).subtracting(["/unknown"]), Set(written))
        for (path, lines) in zip(paths.sorted { $0.key < $1.key }, printed.dropFirst()) {
            let statuses = lines.joined().split(separator: " ")
            expectEqual(statuses.count, path.value == "call" ? 1 : 4, "\(path): \(lines)")
            expectEqual((statuses.first == "403"), path.value != "probe", "\(path): \(lines)")
            #expect(!statuses.dropFirst().contains("403"), "\(path): \(lines)")
        }
    }

    @Test func `an example for a proxy that names fields of the verdict names all of them`()
        throws
    {
        let page = try Document("rules/docs/origins.md").prose.joined(separator: "\n")
        let code = try Regex("`(App-Attest-[A-Za-z-]+)`", as: (Substring, Substring).self)
        let fields = Set(page.matches(of: code).map { $0.1.lowercased() })
            .subtracting(["app-attest-challenge", "app-attest-error"])
        #expect(fields.count > 10)
        // The examples for the other proxies copy and delete all names that begin so.
        for name in ["nginx.conf", "Caddyfile", "envoy-gateway.yaml"] {
            let file = Repository.folder.appending(path: "deploy/decisions/\(name)")
            let text = try String(contentsOf: file, encoding: .utf8).lowercased()
            let absent = try fields.filter { field in
                !text.contains(try Regex("\(field)(?![a-z-])"))
            }
            expectEqual(absent, [], "\(name)")
        }
    }

    /// It has a space after each colon, and an element on each line.
    @Test func `commands look for members of status as its JSON for people has them`() throws {
        for page in Repository.pages(of: "deploy") {
            for line in try Document(page).lines where line.contains("/status | ") {
                #expect(!line.contains("\":"), "\(page): \(line)")
            }
        }
    }

    @Test func `the unit makes the folder of the socket that commands and pages name`() throws {
        let names = [
            "deploy/docs/dashboard.md", "deploy/docs/install.md",
            "Sources/gateway/Gateway/Operators/AdminCall.swift",
        ]
        for name in names {
            let file = Repository.folder.appending(path: name)
            let text = try String(contentsOf: file, encoding: .utf8)
            #expect(text.contains("/run/portcullis/admin.sock"), "\(name)")
        }
        let file = Repository.folder.appending(path: "deploy/portcullis.service")
        let unit = try String(contentsOf: file, encoding: .utf8)
        #expect(unit.contains("\nRuntimeDirectory=portcullis\n"))
    }

    /// With systemd's own limit of starts, a fault of some seconds would end the gateway for good.
    @Test func `the unit tries a start again for as long as it takes, and says why`() throws {
        let file = Repository.folder.appending(path: "deploy/portcullis.service")
        let unit = try String(contentsOf: file, encoding: .utf8)
        // systemd heeds the limit in the section of the unit alone.
        let parts = unit.components(separatedBy: "\n[Service]\n")
        try #require(parts.count == 2)
        let lines = parts[0].split(separator: "\n")
        let limit = try #require(lines.firstIndex(of: "StartLimitIntervalSec=0"))
        let before = lines[..<limit].lastIndex { !$0.hasPrefix("#") } ?? 0
        let why = lines[before..<limit].joined(separator: "\n")
        for part in ["A start that fails is tried again", "limit of starts", "auto-restart"] {
            #expect(why.contains(part), "\(part)")
        }
        #expect(!parts[1].contains("StartLimit"))
        #expect(parts[1].contains("\nRestart=on-failure\nRestartSec=2s\n"))
    }

    /// Where the store's volume is on the node's disk, the default would be memory.
    @Test func `pods with a store of their own hold content in their emptyDir`() throws {
        for name in ["gateway/gateway.yaml", "sidecar/sidecar.yaml"] {
            let file = Repository.folder.appending(path: "deploy/kubernetes/\(name)")
            let text = try String(contentsOf: file, encoding: .utf8)
            #expect(text.contains("\n    spill_folder: /tmp\n"), "\(name)")
            #expect(text.contains("- { name: tmp, mountPath: /tmp }\n"), "\(name)")
            #expect(text.contains("- name: tmp\n          emptyDir: { sizeLimit:"), "\(name)")
        }
    }

    @Test func `the image has all pages that help prints`() throws {
        let file = Repository.folder.appending(path: "deploy/Containerfile")
        let text = try String(contentsOf: file, encoding: .utf8)
        for folder in ["deploy/docs", "rules/docs", "Sources/client/docs"] {
            #expect(text.contains("COPY \(folder) /usr/local/share/portcullis/help/\(folder)\n"))
        }
    }

    @Test func `every target has its place in the table of folders`() throws {
        let text = try Document("Sources/docs/architecture.md").prose.joined(separator: "\n")
        let sources = Repository.folder.appending(path: "Sources")
        let files = FileManager.default
        let targets = try files.contentsOfDirectory(atPath: sources.path).filter { $0 != "docs" }
            .flatMap { group in
                (try? files.contentsOfDirectory(atPath: sources.appending(path: group).path)) ?? []
            }
            .filter { !$0.contains(".") && $0 != "docs" }
        #expect(targets.count > 20)
        expectEqual(targets.filter { !text.contains("`\($0)`") }, [])
    }
}
