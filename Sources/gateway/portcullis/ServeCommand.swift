import ArgumentParser
import ConfigurationReading
import Dispatch
import Foundation
import Gateway
import Glibc
import KeyCatalog
import KeyStore
import SQLiteKeyStore

struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the gateway. TERM drains and ends, HUP reloads the configuration."
    )

    @Argument(help: "The configuration file.")
    var file: String

    @Flag(
        help: """
            Start although the key store is older than what was used here, empty or missing. What \
            was stored since is lost: assertions admitted since can be replayed where a rule asks \
            for no challenge, keys revoked since pass, devices enrolled since enrol again.
            """
    )
    var acceptOlderStore = false

    func run() throws {
        // First, while the descriptors that were given are the only ones that are open.
        let environment = ProcessInfo.processInfo.environment
        var inherited = InheritedSockets(environment)
        let predecessor = try Self.predecessor(environment)
        if let predecessor { inherited = predecessor.sockets }
        // No program that this one may start is meant by them.
        for name in [
            "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID",
            "LISTEN_FDNAMES", "PORTCULLIS_HANDOVER",
        ] { unsetenv(name) }
        let loaded = ConfigurationLoader.load(file)
        // One message, since each may have to wait for a reader.
        if !loaded.problems.isEmpty {
            Self.say(loaded.problems.map(\.text).joined(separator: "\n"))
        }
        guard let configuration = loaded.configuration else {
            let problems = loaded.problems.map(\.text).joined(separator: "\n")
            predecessor?.refuse(GatewayError(problems, hint: "`portcullis check` says more."))
            Self.say("\(file): refused; nothing was started")
            throw ExitCode(1)
        }
        do throws(GatewayError) {
            var surroundings = surroundings
            surroundings.supervisor = try Supervisor(environment)
            surroundings.inherited = inherited
            surroundings.predecessor = predecessor
            try GatewayServer.run(configuration, file: file, surroundings: surroundings)
        } catch {
            predecessor?.refuse(error)
            Self.say("portcullis: \(error)")
            throw ExitCode(1)
        }
        dispatchMain()
    }

    /// The process to take over from; `nil` for a start of its own.
    private static func predecessor(_ environment: [String: String]) throws -> Predecessor? {
        do throws(GatewayError) {
            return try Predecessor(environment)
        } catch {
            say("portcullis: \(error)")
            throw ExitCode(1)
        }
    }

    private var surroundings: GatewayServer.Surroundings {
        var surroundings = GatewayServer.Surroundings()
        guard acceptOlderStore else { return surroundings }
        surroundings.openJournal = { path in
            Result { () throws(StoreProblem) in
                let journal = try SQLiteKeyJournal(path: path, age: .any)
                let found = journal.accepted.map { "\($0.path): \($0.detail); accepted" }
                Self.say("warning: --accept-older-store: \(found ?? "nothing is older; remove it")")
                return journal
            }
        }
        return surroundings
    }

    private static func say(_ text: String) {
        StandardError.write(text, patienceMillis: StandardError.startPatienceMillis)
    }
}
