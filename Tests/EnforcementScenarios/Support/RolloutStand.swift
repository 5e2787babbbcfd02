import Foundation
import LoopbackKit
import TestSupport
import Testing

/// A gateway with two event loops whose calls come over a Unix socket.
final class RolloutStand {
    static let rules = """
        - id: orders
          match: { path: /v1/orders }
          mode: enforce
          sign: [method, target]
        - id: open
          match: { path: /v1/open }
          mode: off
        - id: closed
          match: { path: /v1/closed }
          mode: deny
        """

    let scenario: Scenario
    let origin: RecordingOrigin
    var config: String { scenario.path("portcullis.yaml") }
    var orders: String { scenario.path("portcullis.db.rollout") }

    init(rules: String = RolloutStand.rules) throws {
        scenario = try Scenario()
        origin = try scenario.origin()
        try configure(rules)
    }

    func configure(_ rules: String) throws {
        try scenario.configure(
            origin,
            rules: rules,
            more: "plan: on\nlimits: { address_failures: off }"
        )
        let text = try String(contentsOfFile: config, encoding: .utf8)
        try scenario.write(
            "portcullis.yaml",
            text.replacing(
                "admin: { address: 127.0.0.1:0 }",
                with: "admin: { address: \"unix:\(scenario.path("admin.sock"))\" }"
            )
        )
    }

    func run(_ words: String...) throws -> Scenario.Result {
        try scenario.portcullis(["rollout", "--config", config] + words)
    }

    /// What a request without a proof is answered, on so many connections that both event
    /// loops have some.
    func answers(_ gateway: GatewayProcess, _ path: String = "/v1/orders") throws -> Set<
        Int
    > {
        Set(try (0..<16).map { _ in try gateway.client().send("GET", path).status })
    }

    /// The lines of the audit log.
    func audit() throws -> [[String: String]] {
        let text = try String(contentsOfFile: orders + ".log", encoding: .utf8)
        return try text.split(separator: "\n").map { line in
            let value = try JSONSerialization.jsonObject(with: Data(line.utf8))
            return try #require(value as? [String: String])
        }
    }

    func status() throws -> [String: [String: Any]] {
        let client = HTTPClient(path: scenario.path("admin.sock"))
        let rules = try client.send("GET", "/status").object?["rules"] as? [[String: Any]]
        return Dictionary(
            uniqueKeysWithValues: try #require(rules).map { ("\($0["id"] ?? "")", $0) }
        )
    }
}
