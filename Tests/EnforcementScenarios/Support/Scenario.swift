import AppAttest
import ConfigurationReading
import Cryptography
import Encodings
import EventLoops
import Foundation
import Gateway
import KeyStore
import LoopbackKit
import Rules
import SoftwareAuthenticator

/// A folder with a configuration, and the programs that run on it. All of it is gone after
/// ``end()``.
final class Scenario {
    /// The App ID; of an Android app the package name.
    static var appID: String {
        ClientSide.current == .android ? "com.example.shop" : "TEAM123456.com.example.shop"
    }
    static let now = UnixTime(seconds: Int64(Date().timeIntervalSince1970))
    static let authority = SoftwareAuthority(seed: Array("scenarios".utf8), madeAt: now)
    static var device: SoftwareDevice { ClientSide.current == .android ? phone : iPhone }
    private static let iPhone = SoftwareDevice(
        authority: authority,
        appID: "TEAM123456.com.example.shop",
        environment: .production,
        shape: .beforeTwentySeven
    )
    private static let phone = SoftwareDevice(
        authority: authority,
        package: "com.example.shop",
        phone: SoftwarePhone()
    )

    /// The test app's entry of `apps`. No list of revoked phones is known here.
    static var app: String {
        let trust = "environments: [test], test_root: root.pem"
        guard ClientSide.current == .android else { return "{ id: \(appID), \(trust) }" }
        let signer = Hex.text(SoftwarePhone.signer)
        return "{ android: \(appID), signers: [\"\(signer)\"], \(trust), on_error: forward }"
    }

    /// The program under test; it lies beside the bundle of the tests.
    static let program = built("portcullis")
    /// The load generator.
    static let loadProgram = built("portcullis-load")
    /// The program with a store that ends the process at a chosen place.
    static let faultyProgram = built("portcullis-faulty")

    private static func built(_ name: String) -> String? {
        let bundle = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        let path = bundle.appending(path: name).path
        if FileManager.default.isExecutableFile(atPath: path) { return path }
        print("no \(path): scenarios are not tried")
        return nil
    }

    static var isPossible: Bool { program != nil }

    /// Whether everything was built with a sanitizer, the gateway too. It then takes crashes, it
    /// reports leaks itself, and much of what is resident is its own, such as 256 MiB of what was
    /// freed (AddressSanitizer's `quarantine_size_mb`).
    static let isSanitized = dlsym(nil, "__sanitizer_get_current_allocated_bytes") != nil

    /// Where a program is that a scenario needs; says so when it is nowhere.
    static func tool(_ name: String) -> String? { ChildProcess.tool(name) }

    /// How origins are spoken to.
    enum OriginSide: CaseIterable, Sendable { case plain, tls }

    let folder: URL
    private let originSide: OriginSide
    private var children: [ChildProcess] = []
    private var origins: [RecordingOrigin] = []
    private var faultyOrigins: [FaultyOrigin] = []

    init(_ originSide: OriginSide = .plain) throws {
        self.originSide = originSide
        folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-scenario-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try write("root.pem", Self.authority.rootPEM)
        guard case .tls = originSide else { return }
        guard let openssl = Self.tool("openssl") else {
            throw ChildProcess.Failure(description: "no openssl")
        }
        let arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "2", "-subj", "/CN=origin", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", path("origin.key"), "-out", path("origin.pem"),
        ]
        guard try run(openssl, arguments).status == 0 else {
            throw ChildProcess.Failure(description: "openssl made no certificate")
        }
    }

    /// Plays a scenario before an origin in the clear, and before one under TLS.
    static func onBothSides(_ play: (Scenario) throws -> Void) throws {
        for side in OriginSide.allCases {
            let scenario = try Scenario(side)
            defer { scenario.end() }
            try play(scenario)
        }
    }

    /// For what was thrown before its owner could say that it ends.
    deinit { end() }

    func end() {
        for child in children { child.end() }
        for origin in origins { origin.end() }
        for origin in faultyOrigins { origin.end() }
        (children, origins, faultyOrigins) = ([], [], [])
        try? FileManager.default.removeItem(at: folder)
    }

    func path(_ name: String) -> String { folder.appending(path: name).path }

    func write(_ name: String, _ text: String) throws {
        try text.write(to: folder.appending(path: name), atomically: true, encoding: .utf8)
    }

    /// - socket: the file of its socket, where it is not to have a port.
    func origin(fields: String = "", socket: String? = nil) throws -> RecordingOrigin {
        var tls: TLSContext?
        if case .tls = originSide {
            tls = try TLSContext(
                serverCertificateChain: path("origin.pem"),
                key: path("origin.key")
            )
        }
        let origin = try RecordingOrigin(fields: fields, path: socket, tls: tls)
        origins.append(origin)
        return origin
    }

    func faultyOrigin() throws -> FaultyOrigin {
        let origin = try FaultyOrigin()
        faultyOrigins.append(origin)
        return origin
    }

    /// Starts a program that ends with the scenario.
    func start(_ program: String, _ arguments: [String], input: Data? = nil) throws -> ChildProcess
    {
        let child = try ChildProcess(program, arguments, input: input, folder: folder)
        children.append(child)
        return child
    }

    /// How a program that ran to its end went.
    typealias Result = ChildProcess.Outcome

    /// Runs a program to its end.
    func run(_ program: String, _ arguments: [String], input: String = "") throws -> Result {
        try ChildProcess.run(program, arguments, input: input, folder: folder)
    }

    /// Runs a subcommand of the program under test.
    @discardableResult
    func portcullis(_ arguments: String..., input: String = "") throws -> Result {
        try portcullis(arguments, input: input)
    }

    func portcullis(_ arguments: [String], input: String = "") throws -> Result {
        guard let program = Self.program else {
            throw ChildProcess.Failure(description: "no portcullis")
        }
        return try run(program, arguments, input: input)
    }

    // MARK: The configuration

    /// Writes a configuration with the test app, and what else is said.
    ///
    /// Where no apps are given, the rules that verify get the test app, which must be named.
    ///
    /// - `origin`: the origin's server.
    /// - `rules`: the list of rules, in YAML without indentation.
    /// - `database`: the address of a PostgreSQL, in the place of the file `store`.
    /// - `origins`: more origins, in YAML that is indented.
    /// - `listeners`: more listeners, in YAML that is indented.
    func configure(
        _ file: String = "portcullis.yaml",
        origin: String,
        apps: String? = nil,
        rules: String,
        more: String = "",
        store: String = "portcullis.db",
        database: String? = nil,
        loops: Int = 2,
        origins: String = "",
        listeners: String = ""
    ) throws {
        let place = database.map { "postgresql: { address: \"\($0)\" }" } ?? "sqlite: \"\(store)\""
        let secured = originSide == .tls ? ", tls: { ca: origin.pem }" : ""
        let rules = apps == nil ? Self.naming(Self.appID, in: rules) : rules
        let apps = apps ?? "  - \(Self.app)"
        if apps.contains("android:"), !more.contains("google:") {
            try keepStatusList(beside: database == nil ? store : file)
        }
        let indented = rules.split(separator: "\n").map { "  \($0)" }.joined(separator: "\n")
        let ending = more.contains("drain:") ? Self.drainIdle : "\(Self.drainIdle), \(Self.drain)"
        try write(
            file,
            """
            listen:
            \(try ClientSide.current.listeners(and: listeners))
            admin: { address: 127.0.0.1:0 }
            event_loops: \(loops)
            origins:
              shop: { servers: ["\(origin)"]\(secured) }
            \(origins)
            apps:
            \(apps)
            store: { \(place) }
            default: { origin: shop, mode: off }
            \(more.replacing("timeouts: {", with: "timeouts: { \(ending),"))
            rules:
            \(indented)
            \(more.contains("timeouts:") ? "" : "timeouts: { \(ending) }")

            """
        )
    }

    /// A copy of an empty list of Google's that is so young that no scenario asks for another one.
    private func keepStatusList(beside name: String) throws {
        try write(
            name + ".google-status",
            """
            portcullis-status-list 1
            url https://android.googleapis.com/attestation/status
            date \(Self.now.seconds)

            {"entries": {}}
            """
        )
    }

    /// A client here has no request on its way when it stops a gateway, and keeps its connection.
    private static let drainIdle = "drain_idle: 100ms"
    /// Until then a listener that ends waits for clients in a handshake, a quarter of a second.
    /// Whoever stops a gateway with a request on its way says `drain` in `more`.
    private static let drain = "drain: 50ms"

    /// The rules, each that verifies with the app.
    static func naming(_ app: String, in rules: String) -> String {
        var lines: [String] = []
        for line in rules.components(separatedBy: "\n") {
            let mode = ["mode: enforce", "mode: observe"].first { line.contains($0) }
            let place = String(line.prefix { $0 == " " })
            if let mode, line == place + mode {
                lines += [line, "\(place)apps: [\(app)]"]
            } else if let mode {
                lines.append(line.replacing(mode, with: "\(mode), apps: [\(app)]"))
            } else {
                lines.append(line)
            }
        }
        return lines.joined(separator: "\n")
    }

    /// Has the configuration name an admin listener that commands can call.
    func serveCalls() throws {
        let file = path("portcullis.yaml")
        let text = try String(contentsOfFile: file, encoding: .utf8)
        let address = "\"unix:\(path("admin.sock"))\""
        try write(
            "portcullis.yaml",
            text.replacing("127.0.0.1:0 }\nevent_loops", with: "\(address) }\nevent_loops")
        )
    }

    func configure(_ origin: RecordingOrigin, rules: String, more: String = "") throws {
        try configure(origin: origin.address, rules: rules, more: more)
    }

    /// The origin `calls` is a server with HTTP/2; clients speak HTTP/1.1 in the clear.
    func configure(calls origin: TestOrigin, rules: String) throws {
        try ClientSide.inTheClear {
            try configure(
                origin: "127.0.0.1:9",
                rules: rules,
                loops: 1,
                origins: "  calls: { servers: [\"\(origin.address)\"], http2: on }"
            )
        }
    }

    /// Starts the gateway and waits until it serves.
    ///
    /// - `within`: a program and its arguments that start it.
    /// - `arguments`: options of `serve`.
    func serve(
        _ file: String = "portcullis.yaml",
        within outer: [String] = [],
        arguments: [String] = []
    ) throws -> GatewayProcess {
        guard let program = Self.program else {
            throw ChildProcess.Failure(description: "no portcullis")
        }
        let words = outer + [program, "serve"] + arguments + [path(file)]
        return try GatewayProcess(try start(words[0], Array(words.dropFirst())))
    }

    /// Starts the gateway on a network of its own.
    func serve(_ file: String, in network: NetworkNamespace) throws -> GatewayProcess {
        var gateway = try serve(file, within: network.entrance)
        gateway.network = network
        return gateway
    }

    /// Starts the gateway that ends at a place, once that was passed so many times after WINCH.
    func serve(endingAt place: String, _ count: Int) throws -> GatewayProcess {
        guard let program = Self.faultyProgram else {
            throw ChildProcess.Failure(description: "no portcullis-faulty")
        }
        let arguments = [path("portcullis.yaml"), place, String(count)]
        return try GatewayProcess(try start(program, arguments))
    }

    /// Imports keys of the test app and returns them.
    func imported(
        _ count: Int = 1,
        as environment: SoftwareKey.ImportEnvironment = .test,
        on device: SoftwareDevice = Scenario.device
    ) throws -> [SoftwareKey] {
        let keys = (0..<count).map { _ in device.makeKey() }
        let lines = keys.map { $0.importLine(as: environment) + "\n" }.joined()
        try write("keys.jsonl", lines)
        if try isImportedHere() { return keys }
        let result = try portcullis(
            "keys",
            "import",
            "--config",
            path("portcullis.yaml"),
            path("keys.jsonl")
        )
        guard result.status == 0 else {
            throw ChildProcess.Failure(description: "import: \(result)")
        }
        return keys
    }

    /// Imports in this process, where there is no file yet, and so none that a gateway has open.
    private func isImportedHere() throws -> Bool {
        let loaded = ConfigurationLoader.loadStore(path("portcullis.yaml"))
        guard let file = loaded.settings?.store.file, !FileManager.default.fileExists(atPath: file)
        else { return false }
        try importHere("portcullis.yaml")
        return true
    }

    /// Does what `keys import` does with the file `keys.jsonl`: the program would take longer to
    /// start than to import.
    func importHere(_ configuration: String) throws {
        let loaded = ConfigurationLoader.loadStore(path(configuration))
        guard let settings = loaded.settings,
            let archive = try settings.store.archive(creates: true)
        else { throw ChildProcess.Failure(description: "import: no store in \(configuration)") }
        let apps = Set(settings.apps.map(\.id))
        let report = try archive.importLines(from: path("keys.jsonl"), apps: apps)
        guard report.isImported else {
            throw ChildProcess.Failure(description: "import: \(report.problems)")
        }
    }
}

/// A running gateway.
struct GatewayProcess: ServedGateway {
    let child: ChildProcess
    let port: UInt16
    let clientPort: UInt16
    fileprivate(set) var network: NetworkNamespace?

    init(_ child: ChildProcess) throws {
        self.child = child
        let ports = try child.wait(for: "listening gateway") { _, complained -> [UInt16]? in
            guard complained.contains(" event loops, ") else { return nil }
            let ports = complained.components(separatedBy: "listening on 127.0.0.1:").dropFirst()
                .compactMap { UInt16($0.prefix { $0.isNumber }) }
            return ports.isEmpty ? nil : ports
        }
        port = ports[0]
        clientPort = ports[ports.count - 1]
    }

    /// Ends it as an operator does, and says how it went.
    func stop() throws -> Int32 {
        child.signal(SIGTERM)
        return try child.waitForEnd()
    }

    /// Ends it as a crash does.
    func crash() throws {
        child.signal(SIGKILL)
        let status = try child.waitForEnd()
        guard status == -SIGKILL else {
            throw ChildProcess.Failure(description: "ended by itself with \(status)")
        }
    }
}
