import ConfigurationReading
import Expectations
import Foundation
import Glibc
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// The configurations that are shipped, each with addresses and folders of this machine: every
    /// command of the runbook reaches the gateway, and the address for Prometheus serves nothing
    /// else.
    @Suite struct ShippedFiles {
        /// A file with a configuration that is shipped.
        enum Shipped: String, CaseIterable, Sendable {
            case debian = "deploy/portcullis.yaml"
            case compose = "deploy/compose/portcullis.yaml"
            case fleet = "deploy/compose/fleet/portcullis.yaml"
            case kubernetes = "deploy/kubernetes/gateway/gateway.yaml"
            case kubernetesFleet = "deploy/kubernetes/fleet/fleet.yaml"
            case sidecar = "deploy/kubernetes/sidecar/sidecar.yaml"
            case initCommand = "portcullis init"

            static var possible: [Shipped] {
                allCases.filter { !$0.isFleet || DatabaseServer.programs != nil }
            }

            var isFleet: Bool { [.fleet, .kubernetesFleet].contains(self) }
            /// Whether the address for Prometheus serves pages, too: it is a loopback address.
            var servesPages: Bool { [.debian, .initCommand].contains(self) }

            /// The configuration as it is shipped; of a ConfigMap, its content.
            func text(_ scenario: Scenario) throws -> String {
                guard self != .initCommand else {
                    let words = [
                        "init", "127.0.0.1:9", "--app", Scenario.appID, "--path", "/v1/**",
                    ]
                    let made = try scenario.portcullis(words + ["--folder", "."])
                    expectEqual(made.status, 0, "\(made)")
                    return try String(
                        contentsOfFile: scenario.path("portcullis.yaml"),
                        encoding: .utf8
                    )
                }
                var folder = URL(filePath: #filePath)
                for _ in 0..<3 { folder.deleteLastPathComponent() }
                let file = folder.appending(path: rawValue)
                let text = try String(contentsOf: file, encoding: .utf8)
                guard let start = text.range(of: "  portcullis.yaml: |\n") else { return text }
                let lines = text[start.upperBound...].components(separatedBy: "\n")
                    .prefix { $0.hasPrefix("    ") }
                return lines.map { $0.dropFirst(4) + "\n" }.joined()
            }
        }

        /// Writes a configuration with what differs on this machine.
        private func configure(
            _ shipped: Shipped,
            _ scenario: Scenario,
            _ origin: RecordingOrigin,
            _ database: DatabaseServer?
        ) throws {
            var text = try shipped.text(scenario)
            text.replace(#/servers: \[[^\]]*\]/#, with: "servers: [\"127.0.0.1:\(origin.port)\"]")
            text.replace(#/\n +tls: \{[^}]*\}[^\n]*/#, with: "")
            text.replace(#/(0\.0\.0\.0|127\.0\.0\.1):(8443|8080|9901)/#, with: "127.0.0.1:0")
            text.replace(#/address: host=[^\n]*/#) { _ in
                "address: \"\(database?.address ?? "")\""
            }
            for folder in ["/var/lib/portcullis", "/run/portcullis"] {
                text.replace(folder, with: scenario.folder.path)
            }
            // Clients of the balancer are not part of this.
            text.replace(", proxy_protocol: true", with: "")
            #expect(text.contains("127.0.0.1:0"), "\(text)")
            try scenario.write("portcullis.yaml", text)
            guard shipped.isFleet else { return }
            let made = try scenario.portcullis(
                "store",
                "migrate",
                scenario.path("portcullis.yaml")
            )
            expectEqual(made.status, 0, "\(made)")
        }

        /// Runs a command of the runbook, which has to succeed.
        @discardableResult
        private func run(_ scenario: Scenario, _ words: String...) throws -> String {
            let config = ["--config", scenario.path("portcullis.yaml")]
            let hasSubcommands = ["origins", "fleet"].contains(words[0])
            let words =
                words.prefix(hasSubcommands ? 2 : 1) + config
                + words.dropFirst(hasSubcommands ? 2 : 1)
            let done = try scenario.portcullis(Array(words))
            expectEqual(done.status, 0, "\(words): \(done)")
            return done.printed
        }

        @Test(arguments: Shipped.possible)
        func `every command of the runbook works with each configuration that is shipped`(
            shipped: Shipped
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let database = try shipped.isFleet ? DatabaseServer() : nil
            defer { database?.end() }
            let origin = try scenario.origin()
            try configure(shipped, scenario, origin, database)
            let config = scenario.path("portcullis.yaml")
            let check = try scenario.portcullis("check", config)
            #expect(check.printed.contains("admin    unix:"), "\(check)")
            #expect(!check.printed.contains("serves calls"), "\(check)")
            let gateway = try scenario.serve()
            let id = try refusedRequest(gateway)

            let rule = shipped == .initCommand ? "first" : shipped == .debian ? "default" : "orders"
            #expect(try run(scenario, "rollout").contains("\(rule)\tobserve\tfile"))
            #expect(try run(scenario, "report", rule).contains("\(rule): observe"))
            #expect(try run(scenario, "why", id).contains("assertion-missing"))
            #expect(try run(scenario, "rollout", rule, "100%", "--yes").contains("observe (file)"))
            try expectEqual(gateway.client().send("GET", "/v1/orders").status, 401)
            #expect(try run(scenario, "rollout", "--all", "observe", "--why", "on fire") != "")
            try expectEqual(gateway.client().send("GET", "/v1/orders").status, 200)
            try run(scenario, "rollout", "--all", "resume", "--yes")
            try run(scenario, "rollout", rule, "file")
            let server = "127.0.0.1:\(origin.port)"
            #expect(try run(scenario, "origins", "list").contains(server))
            try run(scenario, "origins", "drain", server, "--yes")
            try run(scenario, "origins", "undrain", server)
            if shipped.isFleet { #expect(try run(scenario, "fleet", "status").contains("serving")) }
            try expectMetricsOnly(gateway, shipped)

            let upgraded = try run(scenario, "upgrade")
            let successor = try #require(
                upgraded.firstMatch(of: #/process (\d+) serves/#).flatMap { Int32($0.output.1) }
            )
            defer { kill(successor, SIGKILL) }
            #expect(try run(scenario, "rollout").contains("\(rule)\tobserve\tfile"))
        }

        /// Sends a request without a proof, which is observed.
        ///
        /// - Returns: its id.
        private func refusedRequest(_ gateway: GatewayProcess) throws -> String {
            try expectEqual(gateway.client().send("GET", "/v1/orders").status, 200)
            let line = try gateway.line(about: "/v1/orders")
            return try #require(line["request_id"] as? String, "\(line)")
        }

        /// The address for Prometheus answers what it says, and to no other name.
        private func expectMetricsOnly(
            _ gateway: GatewayProcess,
            _ shipped: Shipped
        ) throws {
            let port = try gateway.adminPort()
            func answer(_ method: String, _ path: String, by name: String = "10.1.2.3") throws
                -> Answer
            {
                try HTTPClient(port: port, asking: name).send(method, path)
            }
            try expectEqual(answer("GET", "/metrics").status, 200)
            try expectEqual(answer("GET", "/healthz", by: "any.example").status, 200)
            try expectEqual(answer("GET", "/metrics", by: "any.example").reason, "host-refused")
            for page in ["/status", "/report", "/rollout", "/origins", "/dashboard", "/", "/jwks"] {
                let reason = try answer("GET", page).reason
                let isServed = reason != "page-unknown"
                // The verdicts are not signed, so the page about their key is none.
                expectEqual(isServed, shipped.servesPages && page != "/jwks", "\(page)")
            }
            let calls = [
                "/rollout/change", "/rollout/forecast", "/why", "/upgrade", "/origins/drain",
                "/trials/open", "/device-check/update",
            ]
            for call in calls {
                try expectEqual(answer("POST", call).reason, "page-unknown", "\(call)")
            }
            for call in ["/refusals", "/audit"] {
                try expectEqual(answer("GET", call).reason, "page-unknown", "\(call)")
            }
        }
    }
}
