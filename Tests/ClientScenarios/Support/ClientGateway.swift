import Foundation
import LoopbackKit
import Synchronization

/// The gateway of a stand: the program under test, which may end and come back at the same port.
final class ClientGateway: Sendable {
    static let program = ClientGateway.built("portcullis")

    /// A program that lies beside the bundle of the tests.
    static func built(_ name: String) -> String? {
        let bundle = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        let path = bundle.appending(path: name).path
        if FileManager.default.isExecutableFile(atPath: path) { return path }
        print("no \(path): scenarios are not tried")
        return nil
    }

    let port: UInt16
    private let folder: URL
    private let program: String
    private let child: Mutex<ChildProcess>

    private var configuration: URL { folder.appending(path: "portcullis.yaml") }

    /// Starts it in a folder.
    ///
    /// - `text`: its configuration, with `127.0.0.1:0` as its first address.
    init(in folder: URL, _ text: String) throws {
        guard let program = Self.program else {
            throw ChildProcess.Failure(description: "no portcullis")
        }
        (self.folder, self.program) = (folder, program)
        let file = folder.appending(path: "portcullis.yaml")
        try text.write(to: file, atomically: true, encoding: .utf8)
        let child = try ChildProcess(program, ["serve", file.path], folder: folder)
        self.child = Mutex(child)
        port = try Self.port(of: child)
        guard let place = text.range(of: "127.0.0.1:0") else {
            throw ChildProcess.Failure(description: "no address to be chosen")
        }
        try text.replacingCharacters(in: place, with: "127.0.0.1:\(port)")
            .write(to: file, atomically: true, encoding: .utf8)
    }

    private static func port(of gateway: ChildProcess) throws -> UInt16 {
        try gateway.wait(for: "listening gateway") { _, complained in
            guard complained.contains(" event loops, "),
                let start = complained.range(of: "listening on 127.0.0.1:")
            else { return nil }
            return UInt16(complained[start.upperBound...].prefix { $0.isNumber })
        }
    }

    /// Ends it as a crash does.
    func kill() { child.withLock { $0.end() } }

    /// Starts it again.
    ///
    /// - `wipingStore`: with an empty store.
    func start(wipingStore: Bool = false) throws {
        if wipingStore {
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
            where name.hasPrefix("portcullis.db") {
                try FileManager.default.removeItem(at: folder.appending(path: name))
            }
        }
        let again = try ChildProcess(program, ["serve", configuration.path], folder: folder)
        child.withLock { $0 = again }
        guard try Self.port(of: again) == port else {
            throw ChildProcess.Failure(description: "the gateway came back at another port")
        }
    }

    /// Ends it as a crash does, and starts it again.
    func restart(wipingStore: Bool = false) throws {
        kill()
        try start(wipingStore: wipingStore)
    }

    /// Changes its configuration, which it reads when it starts again.
    func edit(_ text: String, into other: String) throws {
        let old = try String(contentsOf: configuration, encoding: .utf8)
        guard old.contains(text) else {
            throw ChildProcess.Failure(description: "no “\(text)” in the configuration")
        }
        try old.replacing(text, with: other)
            .write(to: configuration, atomically: true, encoding: .utf8)
    }

    /// Revokes a key, as an operator does.
    func revoke(_ keyID: String) throws {
        let command = try ChildProcess.run(
            program,
            ["keys", "revoke", "--config", configuration.path, keyID],
            folder: folder
        )
        guard command.status == 0 else {
            throw ChildProcess.Failure(description: "revoke: \(command.complained)")
        }
    }

    /// Takes a key over, as an operator does with a line that a device has printed.
    func importKey(_ line: String) throws {
        let file = folder.appending(path: "import.jsonl")
        try (line + "\n").write(to: file, atomically: true, encoding: .utf8)
        let command = try ChildProcess.run(
            program,
            ["keys", "import", "--config", configuration.path, file.path],
            folder: folder
        )
        guard command.status == 0 else {
            throw ChildProcess.Failure(description: "import: \(command.complained)")
        }
        try restart()
    }

    /// What `portcullis plan` writes of the configuration.
    func plan() throws -> Data {
        let command = try ChildProcess.run(program, ["plan", configuration.path], folder: folder)
        guard command.status == 0 else {
            throw ChildProcess.Failure(description: "plan: \(command.complained)")
        }
        return Data(command.output)
    }
}
