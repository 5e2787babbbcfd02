import AppleStandIn
import Foundation
import LoopbackKit
import Parties
import SoftwareAuthenticator

@testable import Gateway

/// A gateway whose rules ask a stand-in for tests for people, and an origin.
///
/// All of it is gone after ``end()``.
final class PeopleStand {
    /// The field that has the tokens.
    static let field = "X-Test-Token"
    static let services = SiteverifySettings.Service.allCases

    let scenario: Scenario
    let tests: StandInServer
    let origin: RecordingOrigin
    let client: HTTPClient
    private let hosted: HostedGateway
    /// Another gateway, with a store of its own.
    private let other: HostedGateway

    /// - more: further settings of each proof, such as `, timeout: 1s`.
    /// - limits: the section `limits`.
    init(_ more: String = "", limits: String = "{}") throws {
        scenario = try Scenario()
        tests = try StandInServer(folder: scenario.folder.path)
        origin = try scenario.origin()
        try Self.configure(scenario, tests, origin, more, limits)
        hosted = try HostedGateway(file: scenario.path("portcullis.yaml"))
        other = try HostedGateway(file: scenario.path("other.yaml"))
        client = HTTPClient(port: hosted.port)
    }

    static func writeSecret(_ scenario: Scenario, _ text: String) throws {
        try scenario.write("secret", text)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600],
            ofItemAtPath: scenario.path("secret")
        )
    }

    private static func configure(
        _ scenario: Scenario,
        _ tests: StandInServer,
        _ origin: RecordingOrigin,
        _ more: String,
        _ limits: String
    ) throws {
        try writeSecret(scenario, StandInServer.testSecret)
        func proof(_ name: String, _ service: SiteverifySettings.Service, _ rest: String) -> String
        {
            let key = service == .enterprise ? "site_key: \(StandInServer.testSiteKey), " : ""
            return """
                  \(name): { kind: siteverify, service: \(service.rawValue), \
                url: "\(tests.testURL(service))", secret_file: secret, field: \(field), \
                hostname: localhost, action: order, min_score: 0.5, \(key)\
                roots: \(tests.rootFile)\(rest)\(more) }
                """
        }
        let proofs =
            services.map { proof($0.rawValue, $0, "") }
            + [proof("lenient", .turnstile, ", on_error: forward")]
        let names = services.map(\.rawValue) + ["lenient"]
        let rules = names.map { name in
            """
            - id: \(name)
              match: { path: /v1/\(name) }
              mode: enforce
              accept: [\(name)]
            """
        }
        let others = """
            - id: both
              match: { path: /v1/both }
              mode: enforce
              apps: [\(Scenario.appID)]
              sign: [method, target, body]
              also: [turnstile]
            - id: plain
              match: { path: /v1/plain }
              mode: enforce
              apps: [\(Scenario.appID)]
              sign: [method, target, body]
            """
        for file in ["portcullis", "other"] {
            try scenario.configure(
                file + ".yaml",
                origin: origin.address,
                apps: "  - \(Scenario.app)",
                rules: (rules + [others]).joined(separator: "\n"),
                more: "limits: \(limits)\nproofs:\n" + proofs.joined(separator: "\n"),
                store: file + ".db",
                loops: 1
            )
        }
    }

    func end() {
        for gateway in [hosted, other] where !gateway.isStopped {
            gateway.stop()
            _ = gateway.exitStatus()
        }
        tests.stop()
        scenario.end()
    }

    var server: any ServedGateway { Served(port: hosted.port, clientPort: hosted.lastPort) }
    var port: UInt16 { hosted.port }

    /// A client of the other gateway.
    var otherClient: HTTPClient { HTTPClient(port: other.port) }

    private struct Served: ServedGateway {
        let port: UInt16
        let clientPort: UInt16
    }

    private var admin: HTTPClient { HTTPClient(port: hosted.adminPort, asking: "localhost") }

    /// The page of the metrics.
    func metrics() throws -> String { try admin.send("GET", "/metrics").text }

    /// Reads the configuration again.
    func reload() throws {
        let admin = admin
        let generation = try Metrics(admin)["configuration_generation"] + 1
        let server = hosted.server
        server.plane.perform { server.reloads.reload() }
        try self.server.waitUntil("generation \(generation)", admin) {
            $0["configuration_generation"] == generation
        }
    }

    /// A new token, which is good.
    func token(_ test: StandInTest = StandInTest()) -> String {
        let token = "0.\(UUID().uuidString)"
        tests.addTest(token, test)
        return token
    }

    /// Sends a request with a token.
    func send(
        _ rule: String,
        _ token: String?,
        on client: HTTPClient? = nil
    ) throws -> Answer {
        let fields = token.map { [(name: Self.field, value: $0)] } ?? []
        return try (client ?? self.client).send(
            "POST",
            "/v1/\(rule)",
            fields,
            content: Array("order".utf8)
        )
    }

    /// Sends a request with a token and does not read the answer.
    func begin(_ rule: String, _ token: String, from host: UInt8? = nil) throws -> Wire {
        let fields = [(name: Self.field, value: token)]
        let head = HTTPClient.head("POST", "/v1/\(rule)", fields) + "Content-Length: 0\r\n\r\n"
        let wire = try Wire(port: port, from: host)
        try wire.send(Array(head.utf8))
        return wire
    }

    /// Waits until the services were asked so often; whether it came to that.
    func awaitCalls(_ count: Int) -> Bool {
        tests.wait { [tests] _ in tests.testCalls.count >= count }
    }
}
