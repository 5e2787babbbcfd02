import AppAttest
import AppleStandIn
import Cryptography
import Encodings
import Foundation
import KeyStore
import LoopbackKit
import OutboundCalls
import Parties
import Synchronization
import TestSupport

@testable import Gateway

/// A gateway in the tests' process that calls a stand-in for Apple. Both have one clock, which the
/// test steps.
///
/// All of it is gone after ``end()``.
final class AppleStand {
    private final class Clock: Sendable {
        let milliseconds = Atomic(Int64(Date().timeIntervalSince1970 * 1_000))

        var seconds: Int64 { milliseconds.load(ordering: .relaxed) / 1_000 }
    }

    let scenario: Scenario
    let apple: StandInServer
    private let clock: Clock
    private let hosted: HostedGateway
    private let concurrent: Int
    private let loops: Int
    private let trusts: Bool
    private let more: String
    private let origin: TestOrigin

    /// - trusts: whether the gateway believes the stand-in's certificate.
    /// - knowsTeam: whether the stand-in knows the gateway's team.
    /// - more: another line of the section `apple`.
    init(
        trusts: Bool = true,
        knowsTeam: Bool = true,
        concurrent: Int = 8,
        loops: Int = 2,
        more: String = ""
    ) throws {
        let clock = Clock()
        self.clock = clock
        scenario = try Scenario()
        origin = try TestOrigin()
        apple = try StandInServer(folder: scenario.folder.path) {
            UnixTime(seconds: clock.seconds)
        }
        (self.trusts, self.concurrent, self.loops) = (trusts, concurrent, loops)
        self.more = more
        let team = StandInTeam()
        if knowsTeam { apple.add(team) }
        try Self.configure(scenario, origin, apple, team, trusts, concurrent, loops, more)
        hosted = try HostedGateway(file: scenario.path("portcullis.yaml")) { surroundings in
            surroundings.wallClock = { clock.milliseconds.load(ordering: .relaxed) }
        }
    }

    func configure(team: StandInTeam) throws {
        try Self.configure(scenario, origin, apple, team, trusts, concurrent, loops, more)
    }

    private static func configure(
        _ scenario: Scenario,
        _ origin: TestOrigin,
        _ apple: StandInServer,
        _ team: StandInTeam,
        _ trusts: Bool,
        _ concurrent: Int,
        _ loops: Int,
        _ more: String
    ) throws {
        try scenario.write("key.p8", team.p8)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600],
            ofItemAtPath: scenario.path("key.p8")
        )
        try scenario.configure(
            origin: origin.address,
            rules: "[]",
            more: """
                apple:
                  keys: [{ team: \(team.teamID), key_id: \(team.keyID), file: key.p8 }]
                  hosts: { \(apple.hostSettings) }
                  \(trusts ? "roots: \(apple.rootFile)" : "")
                  concurrent: \(concurrent)
                  rate: 1000/s
                  \(more)
                """,
            loops: loops
        )
    }

    func end() {
        if !hosted.isStopped { _ = stop() }
        apple.stop()
        origin.stop()
        scenario.end()
    }

    /// Ends the gateway.
    func stop() -> Int32? {
        hosted.stop()
        return hosted.exitStatus()
    }

    var port: UInt16 { hosted.port }
    var calling: any AppleCalling { hosted.server.appleServices }

    var milliseconds: Int64 { clock.milliseconds.load(ordering: .relaxed) }
    var now: UnixTime { UnixTime(seconds: clock.seconds) }

    func step(minutes: Int64) {
        clock.milliseconds.wrappingAdd(minutes * 60_000, ordering: .relaxed)
    }

    /// The page of the metrics.
    func metrics() throws -> String {
        try HTTPClient(port: hosted.adminPort, asking: "localhost").send("GET", "/metrics").text
    }

    /// The page of the status.
    func status() throws -> [String: Any] {
        try HTTPClient(port: hosted.adminPort, asking: "localhost").send("GET", "/status").object
            ?? [:]
    }

    // MARK: Reloads

    func reload(until generation: Int) throws {
        reload()
        try wait(for: "portcullis_configuration_generation \(generation)\n")
    }

    func reloadRefused() throws {
        reload()
        try wait(for: "portcullis_configuration_reloads_refused_total 1\n")
    }

    private func reload() {
        let server = hosted.server
        server.plane.perform { server.reloads.reload() }
    }

    private func wait(for line: String) throws {
        guard try eventually({ try metrics().contains(line) }) else {
            throw ChildProcess.Failure(description: "no \(line)")
        }
    }

    // MARK: Calls

    static func call(
        _ service: AppleService,
        _ environment: KeyEnvironment = .production,
        _ body: [UInt8],
        _ timeout: Duration = .seconds(10)
    ) -> AppleCall {
        AppleCall(
            service: service,
            environment: environment,
            body: body,
            timeout: timeout
        )
    }

    static func call(_ service: AppleService, _ body: [UInt8], _ timeout: Duration) -> AppleCall {
        call(service, .production, body, timeout)
    }

    func reply(_ call: AppleCall) async -> CallReply {
        await withCheckedContinuation { going in
            calling.send(call) { going.resume(returning: $0) }
        }
    }

    func reply(_ service: AppleService, timeout: Duration = .seconds(10)) async -> CallReply {
        await reply(Self.call(service, [], timeout))
    }

    /// Exchanges a receipt.
    func exchange(_ receipt: [UInt8], _ environment: KeyEnvironment = .test) async -> CallReply {
        await reply(Self.call(.receipts, environment, Base64.encode(receipt)))
    }

    /// The receipt that is got for it.
    func exchanged(_ receipt: [UInt8]) async throws -> UnverifiedReceipt {
        guard case .answered(200, _, let body) = await exchange(receipt),
            let bytes = Base64.decode(body.span)
        else { throw ChildProcess.Failure(description: "no receipt") }
        return try UnverifiedReceipt(bytes: bytes)
    }

    func post(_ service: AppleService, _ body: String) async -> CallReply {
        await reply(Self.call(service, .production, Array(body.utf8)))
    }

    /// Asks for the bits of a device, with a fresh token of it.
    func query(_ device: String) async -> CallReply {
        await query(token: StandInServer.deviceToken(device), .production)
    }

    func query(token: String, _ environment: KeyEnvironment) async -> CallReply {
        let body =
            #"{"device_token":"\#(token)","transaction_id":"\#(UUID().uuidString)","#
            + #""timestamp":\#(milliseconds)}"#
        return await reply(Self.call(.queryBits, environment, Array(body.utf8)))
    }
}

extension CallReply {
    /// The status of an answer; `nil` without one.
    var status: Int? { if case .answered(let status, _, _) = self { status } else { nil } }

    /// The content of an answer; `nil` without one.
    var text: String? {
        if case .answered(_, _, let body) = self {
            String(decoding: body, as: UTF8.self)
        } else {
            nil
        }
    }

    /// Whether it has bits.
    var isGood: Bool {
        guard case .answered(200, _, let body) = self else { return false }
        return String(decoding: body, as: UTF8.self).hasPrefix("{\"bit0\":")
    }
}
