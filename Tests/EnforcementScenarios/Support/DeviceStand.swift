import AppAttest
import AppleStandIn
import Foundation
import KeyStore
import LoopbackKit
import Parties
import RequestBinding
import SoftwareAuthenticator

@testable import Gateway

/// A gateway whose rules ask a stand-in for Apple about devices, an app on one device, and two
/// origins. One of them has Apple keep bit 0 of every device that it sees.
///
/// All of it is gone after ``end()``.
final class DeviceStand {
    static let parts = SigningForm.lines([.method, .target, .body], headers: [])

    private static let rules = """
        - id: trial
          match: { path: /v1/trial }
          origin: trials
          mode: enforce
          sign: [method, target, body]
          device: { refuse_if: { bit0: true }, timeout: 8s }
        - id: kind
          match: { path: /v1/kind }
          mode: enforce
          sign: [method, target, body]
          device: { refuse_if: [{ bit0: true }, { bit1: true }], on_error: forward, timeout: 8s }
        - id: hasty
          match: { path: /v1/hasty }
          mode: enforce
          sign: [method, target, body]
          device: { refuse_if: { bit0: true }, timeout: 300ms }
        - id: both
          match: { path: /v1/both }
          mode: enforce
          sign: [method, target, body]
          device: { refuse_if: { bit0: true, bit1: true }, timeout: 8s }
        - id: watched
          match: { path: /v1/watched }
          mode: observe
          sign: [method, target, body]
          device: { refuse_if: { bit0: true }, timeout: 8s }
        - id: upload
          match: { path: /v1/upload }
          mode: enforce
          sign: [method, target, body]
          body: { digest: streamed }
          device: { refuse_if: { bit0: true }, timeout: 8s }
        - id: plain
          match: { path: /v1/plain }
          origin: trials
          mode: enforce
          sign: [method, target, body]
        - id: open
          match: { path: /v1/open }
          origin: trials
          mode: off
        """

    let scenario: Scenario
    let apple: StandInServer
    /// Where all but trials go.
    let shop: RecordingOrigin
    /// It answers with the bits of ``init(bits:)``.
    let trials: RecordingOrigin
    let client: HTTPClient
    /// The team of the app.
    let team = StandInTeam(teamID: String(Scenario.appID.prefix { $0 != "." }))
    var key: SoftwareKey
    private let hosted: HostedGateway
    private let settings: Settings

    private struct Settings {
        let loops: Int
        let admin: String
        let apple: String
        let timeout: String
        let drain: String
        let limits: String
    }

    /// - bits: the field lines by which an origin has Apple keep bits.
    /// - admin: the section `admin`.
    /// - more: another line of the section `apple`.
    /// - timeout: of a call to Apple.
    /// - drain: how long requests and changes may go on after the stop.
    /// - limits: the section `limits`.
    init(
        bits: String = "App-Attest-Device-Bits: 1,-\r\n",
        loops: Int = 2,
        admin: String = "{ address: 127.0.0.1:0 }",
        apple more: String = "",
        timeout: String = "5s",
        drain: String = "50ms",
        limits: String = "{}"
    ) throws {
        scenario = try Scenario()
        apple = try StandInServer(folder: scenario.folder.path)
        shop = try scenario.origin()
        trials = try scenario.origin(fields: bits)
        settings = Settings(
            loops: loops,
            admin: admin,
            apple: more,
            timeout: timeout,
            drain: drain,
            limits: limits
        )
        key = Scenario.device.makeKey()
        apple.add(team)
        try Self.configure(scenario, [team], apple, (shop, trials), settings)
        hosted = try HostedGateway(file: scenario.path("portcullis.yaml"))
        client = HTTPClient(port: hosted.port)
        try reinstall()
    }

    private static func configure(
        _ scenario: Scenario,
        _ teams: [StandInTeam],
        _ apple: StandInServer,
        _ origins: (shop: RecordingOrigin, trials: RecordingOrigin),
        _ settings: Settings
    ) throws {
        for team in teams {
            try scenario.write("\(team.keyID).p8", team.p8)
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o600],
                ofItemAtPath: scenario.path("\(team.keyID).p8")
            )
        }
        let keys = teams.map {
            "{ team: \($0.teamID), key_id: \($0.keyID), file: \($0.keyID).p8 }"
        }
        try scenario.configure(
            origin: "127.0.0.1:\(origins.shop.port)",
            rules: rules,
            more: """
                timeouts: { drain: \(settings.drain) }
                limits: \(settings.limits)
                apple:
                  keys: [\(keys.joined(separator: ", "))]
                  hosts: { \(apple.hostSettings) }
                  roots: \(apple.rootFile)
                  timeout: \(settings.timeout)
                  \(settings.apple)
                """,
            loops: settings.loops,
            origins: "  trials: { servers: [\"127.0.0.1:\(origins.trials.port)\"] }"
        )
        let text = try String(contentsOfFile: scenario.path("portcullis.yaml"), encoding: .utf8)
        try scenario.write(
            "portcullis.yaml",
            text.replacing("admin: { address: 127.0.0.1:0 }", with: "admin: \(settings.admin)")
        )
    }

    /// Reads the configuration again, with the keys of these teams.
    func reload(_ teams: [StandInTeam]) throws {
        try Self.configure(scenario, teams, apple, (shop, trials), settings)
        let generation = try metrics()["configuration_generation"] + 1
        let server = hosted.server
        server.plane.perform { server.reloads.reload() }
        try self.await("configuration_generation", generation)
    }

    func end() {
        if !hosted.isStopped { _ = stop() }
        apple.stop()
        scenario.end()
    }

    /// Ends the gateway.
    func stop() -> Int32? {
        hosted.stop()
        return hosted.exitStatus()
    }

    func beginStop() { hosted.stop() }

    var server: any ServedGateway { Served(port: hosted.port, clientPort: hosted.lastPort) }
    var port: UInt16 { hosted.port }

    private struct Served: ServedGateway {
        let port: UInt16
        let clientPort: UInt16
    }

    /// A client of the admin listener, where that has a port.
    var admin: HTTPClient { HTTPClient(port: hosted.adminPort, asking: "localhost") }

    func metrics() throws -> Metrics { try Metrics(admin) }

    /// Waits until a metric shows this.
    func await(_ metric: String, _ value: Double) throws {
        try server.waitUntil("\(metric) \(value)", admin) { $0[metric] == value }
    }

    /// The app is installed anew: it has another key. The device stays.
    func reinstall() throws {
        key = Scenario.device.makeKey()
        let answer = try server.enrol(key, client)
        guard answer.status == 201 else {
            throw ChildProcess.Failure(description: "enrolment: \(answer.status) \(answer.text)")
        }
    }

    /// A new token of a device.
    static func token(_ device: String = "phone") -> String {
        StandInServer.deviceToken(device, .test)
    }

    /// A signed request, and the fields to send with it.
    func signed(
        _ path: String,
        token: String?,
        content: String = "order"
    ) -> (request: SoftwareKey.Request, fields: [(name: String, value: String)]) {
        let request = SoftwareKey.Request(
            method: "POST",
            target: path,
            content: Array(content.utf8)
        )
        let proof = key.proof(of: request, signing: Self.parts)
        guard let token else { return (request, proof.fields) }
        return (request, proof.fields + [(name: "App-Attest-Device-Token", value: token)])
    }

    /// Sends a signed request on a connection.
    func send(
        _ path: String,
        token: String? = DeviceStand.token(),
        content: String = "order",
        on client: HTTPClient? = nil
    ) throws -> Answer {
        let (request, fields) = signed(path, token: token, content: content)
        return try (client ?? self.client).send(
            request.method,
            request.target,
            fields,
            content: request.content
        )
    }

    /// Waits until Apple has these bits of a device; whether it came to that.
    func awaitBits(_ bit0: Bool, _ bit1: Bool, of device: String = "phone") -> Bool {
        apple.wait { [apple] _ in
            guard let bits = apple.bits(of: device) else { return false }
            return bits == (bit0, bit1)
        }
    }
}
