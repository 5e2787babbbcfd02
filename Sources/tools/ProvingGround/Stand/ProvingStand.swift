import Encodings
import Foundation
import LoopbackSockets
import SoftwareAuthenticator

/// What all cases of a run share.
struct StandSettings: Sendable {
    /// The path of `portcullis`.
    let program: String
    /// Where clients reach the stand.
    let address: String
    let platform: ProvingPlatform
    let authority: SoftwareAuthority
    let running: RunningGateways
    /// Called with a line for each request and each call of the device.
    let trace: (@Sendable (String) -> Void)?
}

/// The parts around the client in one case: gateway, middle, origin and device, on ports of their
/// own. All of it is gone after ``end()``.
final class ProvingStand: Sendable {
    let ledger: ProvingLedger
    let gateway: GatewayProcess
    let middle: ProvingMiddle
    let origin: ProvingOrigin
    let device: ProvingDevice
    private let settings: StandSettings
    private let gatewaySettings: PlayedConfiguration
    private let folder: URL
    private let servers: (middle: LoopbackServer, origin: LoopbackServer, device: LoopbackServer)

    var middlePort: UInt16 { servers.middle.port }
    var devicePort: UInt16 { servers.device.port }

    init(_ proving: ProvingCase, _ settings: StandSettings) throws(ToolError) {
        self.settings = settings
        gatewaySettings = proving.gateway
        let ledger = ProvingLedger(settings.platform, trace: settings.trace)
        self.ledger = ledger
        let running = settings.running
        let folder = try Self.folder(running)
        self.folder = folder
        var isWhole = false
        defer { if !isWhole { running.remove(folder: folder) } }
        let origin = ProvingOrigin(ledger, proving.origin)
        let originServer = try LoopbackServer { origin.answer($0) }
        self.origin = origin
        try Self.write(settings.authority.rootPEM, to: folder.appending(path: "root.pem"))
        let text = proving.gateway.text(origin: originServer.port, for: settings.platform)
        gateway = try GatewayProcess(
            settings.program,
            in: folder,
            configuredBy: text,
            among: running
        )
        let middle = ProvingMiddle(gateway, ledger, faults: proving.middle)
        self.middle = middle
        let device = ProvingDevice(
            settings.platform,
            settings.authority,
            ledger: ledger,
            faults: proving.device
        )
        self.device = device
        servers = (
            try LoopbackServer(on: settings.address) { middle.answer($0) },
            originServer,
            try LoopbackServer(on: settings.address) { device.answer($0) }
        )
        isWhole = true
    }

    /// Gives the gateway other rules.
    func setRules(_ rules: [GatewayRule]) throws(ToolError) {
        var changed = gatewaySettings
        changed.rules = rules
        try gateway.reload(changed.text(origin: servers.origin.port, for: settings.platform))
    }

    /// Revokes all keys that signed a request so far.
    func revokeKeys() throws(ToolError) {
        let seen = ledger.seen(since: ProvingLedger.Mark()).requests
        for keyID in Set(seen.compactMap { $0["App-Attest-Key-Id"] }) {
            try gateway.run(["keys", "revoke", keyID])
        }
    }

    /// Ends all of it.
    func end() {
        ledger.close()
        servers.middle.stop()
        servers.device.stop()
        gateway.kill()
        servers.origin.stop()
        settings.running.remove(folder: folder)
    }

    private static func folder(_ running: RunningGateways) throws(ToolError) -> URL {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-prove-\(UUID().uuidString)")
        guard running.add(folder: folder) else { throw ToolError("the server ends") }
        do {
            try FileManager.default.createDirectory(
                at: folder,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw ToolError("can't make the folder \(folder.path)")
        }
        return folder
    }

    private static func write(_ text: String, to file: URL) throws(ToolError) {
        guard FileManager.default.createFile(atPath: file.path, contents: Data(text.utf8)) else {
            throw ToolError("can't write \(file.path)")
        }
    }
}

/// The gateway's configuration in a case.
struct PlayedConfiguration: Sendable {
    var rules: [GatewayRule] = GatewayRule.usual
    /// Further settings, as YAML texts by their key.
    var more: [(key: String, text: String)] = []

    /// The text of `portcullis.yaml`.
    func text(origin port: UInt16, for platform: ProvingPlatform) -> String {
        let app: String
        let name: String
        switch platform {
        case .ios:
            name = ProvingDevice.appID
            app = "{ id: \(name), environments: [test], test_root: root.pem }"
        case .android:
            name = ProvingDevice.package
            let signer = Hex.text(SoftwarePhone.signer)
            app = """
                { android: \(name), signers: ["\(signer)"], environments: [test],
                  test_root: root.pem, on_error: forward }
                """
        }
        // Port 9 refuses connections: no case asks anything outside of this machine.
        let google = """
            google: { status_list: { url: "https://127.0.0.1:9/list" } }

            """
        let lines = more.map { "\($0.key): \($0.text)\n" }.joined()
        return """
            listen: [{ address: "127.0.0.1:0" }]
            admin: { address: "127.0.0.1:0" }
            event_loops: 1
            origins: { shop: { servers: ["127.0.0.1:\(port)"] } }
            apps:
              - \(app)
            store: { sqlite: portcullis.db }
            default: { origin: shop, mode: off }
            timeouts: { drain_idle: 100ms }
            \(platform == .android ? google : "")\(lines)
            rules:
            \(rules.map { "  - \($0.text(app: name))\n" }.joined())
            """
    }
}

/// A rule of the gateway's, as YAML.
struct GatewayRule: Sendable {
    /// Its settings in flow style, without braces.
    let members: [(key: String, text: String)]

    /// The text with the app that it admits.
    func text(app: String) -> String {
        let isJudge = members.contains { $0.key == "mode" && !$0.text.contains("off") }
        let all = members + (isJudge ? [("apps", "[\(app)]")] : [])
        return "{ \(all.map { "\($0.key): \($0.text)" }.joined(separator: ", ")) }"
    }

    /// The rules of a case that names none: `/orders/**` enforces, `/watched/**` observes,
    /// `/open/**` asks nothing.
    static let usual = [
        rule("orders", "/orders/**", mode: "enforce"),
        rule("watched", "/watched/**", mode: "observe"),
        rule("open", "/open/**", mode: "off"),
    ]

    private static func rule(_ name: String, _ path: String, mode: String) -> GatewayRule {
        GatewayRule(members: [("id", name), ("match", "{ path: \(path) }"), ("mode", mode)])
    }
}
