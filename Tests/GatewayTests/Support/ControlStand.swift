import ConfigurationReading
import Dispatch
import KeyStore
import Logging
import Rules
import Synchronization
import Testing

@testable import Gateway

/// The parts of a gateway's control, without event loops: no socket, no process, and no disk but
/// for what a test gives.
struct ControlStand {
    /// The one file of a configuration.
    private struct OneFile: ConfigurationFiles {
        let text: String

        func contents(of path: String, limit: Int) throws(FileFault) -> [UInt8] {
            Array(text.utf8)
        }
        func names(in folder: String) throws(FileFault) -> [String] { [] }
        func permissions(of path: String) throws(FileFault) -> UInt16 { 0o600 }
    }

    static let ruleText = """
        { id: orders, match: { path: /orders }, mode: enforce, guard: { refused: 5%, minimum: 20 } }
        """

    let plane: ControlPlane

    init() throws {
        let text = """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { shop: { servers: ["127.0.0.1:1"] } }
            apps: [{ id: TEAM123456.com.example, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: shop, mode: off }
            rules: [\(Self.ruleText)]
            """
        let loaded = ConfigurationLoader.load("p.yaml", files: OneFile(text: text))
        let configuration = try #require(loaded.configuration, "\(loaded.problems.map(\.text))")
        plane = ControlPlane(
            configuration,
            file: "p.yaml",
            surroundings: GatewaySurroundings(),
            loops: [],
            log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    /// Runs on the control queue, after what is under way there.
    func perform<Value: Sendable>(_ body: () throws -> Value) rethrows -> Value {
        try plane.queue.sync(execute: body)
    }
}

/// Collects what a part reports.
final class Transcript<Entry: Sendable>: Sendable {
    private let all = Mutex<[Entry]>([])

    var entries: [Entry] { all.withLock { $0 } }

    func add(_ entry: Entry) { all.withLock { $0.append(entry) } }
}
