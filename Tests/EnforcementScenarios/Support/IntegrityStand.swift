import AppleStandIn
import Encodings
import Foundation
import LoopbackKit
import RequestBinding
import Signatures
import SoftwareAuthenticator

@testable import Gateway

/// A gateway whose rules ask a stand-in for Play Integrity about Android phones, and an origin.
///
/// All of it is gone after ``end()``.
final class IntegrityStand {
    static let field = "App-Attest-Integrity-Token"
    static let appID = "TEAM123456.com.example.shop"
    static let package = "com.example.shop"
    private static let parts = SigningForm.lines([.method, .target, .body], headers: [])

    let scenario: Scenario
    let google: StandInServer
    let console = SoftwarePlayConsole()
    let origin: RecordingOrigin
    let client: HTTPClient
    private let hosted: HostedGateway

    static func device(_ side: ClientSide) -> SoftwareDevice {
        ClientSide.$current.withValue(side) { Scenario.device }
    }

    /// - enrolment: what the Android app says of `integrity`.
    /// - more: further settings of each proof that asks the service, such as `, timeout: 1s`.
    init(enrolment: String = "", _ more: String = "") throws {
        scenario = try Scenario()
        google = try StandInServer(folder: scenario.folder.path)
        origin = try scenario.origin()
        let account = try StandInAccount(tokenURL: google.grantURL)
        google.add(account)
        try Self.writeSecret(scenario, "play.json", account.json)
        try Self.writeSecret(scenario, "decrypt.key", console.decryptionKey + "\n")
        try Self.writeSecret(scenario, "verify.key", console.verificationKey + "\n")
        try Self.configure(scenario, google, origin, enrolment, more)
        hosted = try HostedGateway(file: scenario.path("portcullis.yaml"))
        client = HTTPClient(port: hosted.port)
    }

    static func writeSecret(_ scenario: Scenario, _ name: String, _ text: String) throws {
        try scenario.write(name, text)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600],
            ofItemAtPath: scenario.path(name)
        )
    }

    private static func configure(
        _ scenario: Scenario,
        _ google: StandInServer,
        _ origin: RecordingOrigin,
        _ enrolment: String,
        _ more: String
    ) throws {
        let apps = [ClientSide.http1, .android].map { side in
            let app = ClientSide.$current.withValue(side) { Scenario.app }
            let isAndroid = side == .android && !enrolment.isEmpty
            return isAndroid ? "  - \(app.dropLast(1)), integrity: \(enrolment) }" : "  - \(app)"
        }
        let service =
            "kind: play-integrity, service_account: play.json, url: \"\(google.integrityURL)\", "
            + "roots: \(google.rootFile)\(more)"
        let rules = [
            (
                "marked", "play",
                "device: [device], licensed: true, recognized: true, "
                    + "activity_max: 2, play_protect: [no-issues]"
            ),
            ("strict", "play", "device: [device, strong], licensed: true, action: refuse"),
            ("lenient", "lenient", "action: refuse"),
            ("local", "local", "device: [device], action: refuse"),
        ].map { name, proof, conditions in
            """
            - id: \(name)
              match: { path: /v1/\(name) }
              mode: enforce
              apps: [\(appID), \(package)]
              sign: [method, target, body]
              integrity: { proof: \(proof), \(conditions) }
            """
        }
        try scenario.configure(
            origin: origin.address,
            apps: apps.joined(separator: "\n"),
            rules: rules.joined(separator: "\n"),
            more: """
                proofs:
                  play: { \(service) }
                  lenient: { \(service), on_error: forward }
                  local: { kind: play-integrity, decryption_key: decrypt.key, \
                verification_key: verify.key }
                """,
            loops: 1
        )
    }

    func end() {
        if !hosted.isStopped {
            hosted.stop()
            _ = hosted.exitStatus()
        }
        google.stop()
        scenario.end()
    }

    private struct Served: ServedGateway {
        let port: UInt16
        let clientPort: UInt16
    }

    var server: any ServedGateway { Served(port: hosted.port, clientPort: hosted.lastPort) }

    /// The page of the metrics.
    func metrics() throws -> String {
        try HTTPClient(port: hosted.adminPort, asking: "localhost").send("GET", "/metrics").text
    }

    /// The report, as text.
    func report() throws -> String {
        let admin = HTTPClient(port: hosted.adminPort, asking: "localhost")
        return try admin.send("GET", "/report/1h/text").text
    }

    /// A phone with an enrolled key, whose counter advances.
    final class Phone {
        fileprivate var key: SoftwareKey

        fileprivate init(_ key: SoftwareKey) { self.key = key }
    }

    /// A phone of either kind.
    func phone(_ side: ClientSide = .android) throws -> Phone {
        let key = Self.device(side).makeKey()
        let answer = try server.enrol(key, client)
        guard answer.status == 201 else {
            throw ChildProcess.Failure(description: "enrolment: \(answer.text)")
        }
        return Phone(key)
    }

    /// What the gateway expects a token for a rule's request to be bound to.
    static func clientDataHash(_ rule: String, content: String = "order") -> [UInt8] {
        let digest = Base64.text(SHA256.digest(of: Array(content.utf8)).array)
        let lines = "portcullis-request-v1\nPOST\n/v1/\(rule)\nsha-256=:\(digest):\n-\n"
        return SHA256.digest(of: Array(lines.utf8)).array
    }

    /// Now, since 1970. Google gives no phone two tokens at once.
    static var milliseconds: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    /// What Google says of a good phone, for a rule's request.
    static func verdict(_ rule: String) -> SoftwarePlayVerdict {
        SoftwarePlayVerdict(
            clientDataHash: clientDataHash(rule),
            at: milliseconds,
            signer: SoftwarePhone.signer
        )
    }

    /// A new token.
    func token(
        _ rule: String,
        _ edit: (inout SoftwarePlayVerdict) -> Void = { _ in }
    ) throws -> String {
        var verdict = Self.verdict(rule)
        edit(&verdict)
        guard rule != "local" else { return try console.token(verdict.json) }
        let token = UUID().uuidString
        google.addIntegrity(token, verdict)
        return token
    }

    /// Sends a signed request with a token.
    func send(_ rule: String, _ phone: Phone, _ token: String?) throws -> Answer {
        let request = SoftwareKey.Request(
            method: "POST",
            target: "/v1/\(rule)",
            content: Array("order".utf8)
        )
        let proof = phone.key.proof(of: request, signing: Self.parts)
        let fields = token.map { [(name: Self.field, value: $0)] } ?? []
        return try client.send(request, proof, more: fields)
    }

    /// What the origin was told of the last request's token.
    var told: String? { origin.seen.last?.head.value("App-Attest-Integrity") }
}
