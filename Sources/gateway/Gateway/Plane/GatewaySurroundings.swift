package import EventLoops
import Glibc
package import KeyStore
import SQLiteKeyStore

/// Dependencies that a caller may replace: for tests and the demonstration.
package struct GatewaySurroundings: Sendable {
    /// Ends the process; called when the last client is gone and the store is closed.
    package var exit: @Sendable (Int32) -> Void = { Glibc.exit($0) }
    /// The time of the start, seconds since 1970.
    let startedAt = Int64(time(nil))
    /// The program that an upgrade starts again.
    let program = OwnProgram.current
    /// Whether signals are handled.
    package var watchesSignals = true
    /// The wall clock of the event loops: milliseconds since 1970.
    package var wallClock: @Sendable () -> Int64 = EventLoop.systemWallClock
    /// Opens the keys of a database file.
    package var openJournal: @Sendable (String) -> Result<any KeyJournal, StoreProblem> = {
        path in
        Result { () throws(StoreProblem) in try SQLiteKeyJournal(path: path) }
    }
    package var lookUp: @Sendable (String, UInt16) -> [SocketAddress] = {
        SocketAddress.resolve($0, port: $1)
    }
    /// The intervals of repeated look-ups of names.
    package var lookUpPace = LookUpPace()
    /// The interval of checks of certificate files.
    package var certificatePace = Duration.seconds(5)
    /// The supervisor that started the process and gets its state; `nil` for none.
    package var supervisor: Supervisor?
    /// Sockets that the process was started with.
    package var inherited = InheritedSockets()
    /// The process from which this one takes over; `nil` for a first start.
    package var predecessor: Predecessor?
    /// Whether the process belongs to the gateway, so that it may drop its privileges.
    package var ownsProcess = true

    package init() {}
}
