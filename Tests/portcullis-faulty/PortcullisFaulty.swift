import ConfigurationReading
import Dispatch
import Gateway
import Glibc
import KeyStore
import SQLiteKeyStore

// The gateway with a store that ends the process at a chosen place: in the middle of a commit, of a
// write to the disk, of a checkpoint. For the tests; nothing of it is in `portcullis`.
//
// usage: portcullis-faulty FILE PLACE COUNT
//
// The place is armed with WINCH, a signal that the gateway does not use, and disarmed with the next
// one. When it has been passed COUNT times the process kills itself. At `read` and `registration`
// it goes on, and what happens there fails COUNT times.

@main enum PortcullisFaulty {
    /// Entries at which the log of counters is folded: so few that a short load sees it.
    private static let foldedAt = 48

    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let place = Place(rawValue: arguments[2]),
            let count = Int(arguments[3]), count > 0
        else { return fail("usage: portcullis-faulty FILE PLACE COUNT") }
        let loaded = ConfigurationLoader.load(arguments[1])
        guard let configuration = loaded.configuration else {
            return fail(loaded.problems.map(\.text).joined(separator: "\n"))
        }
        Ending.choose(place, count)
        signal(SIGWINCH) { _ in Ending.arm() }
        var surroundings = GatewaySurroundings()
        surroundings.openJournal = { path in
            Result { () throws(StoreProblem) in
                EndingJournal(
                    try SQLiteKeyJournal(path: path, foldedAt: foldedAt),
                    database: path
                )
            }
        }
        do throws(GatewayError) {
            try GatewayServer.run(configuration, file: arguments[1], surroundings: surroundings)
        } catch {
            return fail("\(error)")
        }
        dispatchMain()
    }

    private static func fail(_ text: String) {
        Ending.say("portcullis-faulty: \(text)")
        exit(1)
    }
}
