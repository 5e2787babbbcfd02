import AppleStandIn
import ClientKit
import Foundation
import LoopbackKit
import Parties
import PortcullisClient
import PortcullisClientTesting

/// A ``ClientStand`` whose gateway asks a stand-in for Apple about devices. The origin has Apple
/// set bit 0 of every device that gets a trial.
///
/// All of it is gone after ``end()``.
final class DeviceTokenStand {
    static let rules = """
        - { id: trial, match: { path: /trial }, mode: enforce,
            device: { refuse_if: { bit0: true }, timeout: 8s } }
        - { id: chat, match: { path: /chat }, mode: enforce, accept: [assertion, session],
            device: { refuse_if: { bit0: true }, timeout: 8s } }
        - { id: watched, match: { path: /watched }, mode: observe,
            device: { refuse_if: { bit0: true }, timeout: 8s } }
        """

    let apple: StandInServer
    let stand: ClientStand
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-apple-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        apple = try StandInServer(folder: folder.path)
        let team = StandInTeam()
        apple.add(team)
        let key = folder.appending(path: "key.p8")
        let isWritten = FileManager.default.createFile(
            atPath: key.path,
            contents: Data(team.p8.utf8),
            attributes: [.posixPermissions: 0o600]
        )
        guard isWritten else { throw CocoaError(.fileWriteUnknown) }
        stand = try ClientStand(
            rules: Self.rules,
            more: """
                apple:
                  keys: [{ team: \(team.teamID), key_id: \(team.keyID), file: \(key.path) }]
                  hosts: { \(apple.hostSettings) }
                  roots: \(apple.rootFile)
                  timeout: 5s
                """
        ) { connection in
            while let request = try connection.nextRequest() {
                let isTrial = request.target == "/trial"
                let fields = isTrial ? "App-Attest-Device-Bits: 1,-\r\n" : ""
                try connection.answer(200, body: "ok", fields: fields, to: request)
            }
        }
    }

    func end() {
        stand.end()
        apple.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// The app with the gateway's plan on a device, and no code for any of this.
    func app(
        _ tokens: any DeviceTokenService = SoftwareDeviceTokenService(device: "phone"),
        _ change: (inout PortcullisConfiguration) throws -> Void = { _ in }
    ) throws -> PortcullisSession {
        let plan = try SigningPlan(json: stand.gateway.plan())
        return try stand.app {
            $0.defaultRequirement = nil
            $0.plan = plan
            $0.deviceTokens = tokens
            try change(&$0)
        }
    }

    /// Waits until Apple has bit 0 of a device; whether it came to that.
    func awaitBit0(of device: String = "phone") -> Bool {
        apple.wait { [apple] _ in apple.bits(of: device)?.bit0 == true }
    }
}
