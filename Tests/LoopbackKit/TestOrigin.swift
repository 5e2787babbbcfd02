import CLinux
package import EventLoops
import Foundation
import Glibc

/// An origin of a test: it accepts, remembers what it was sent, and answers as its script says.
///
/// `@unchecked Sendable`: what changes is touched under `condition`.
package final class TestOrigin: @unchecked Sendable {
    /// What came on one connection, in the order of the accepts.
    package struct ConnectionLog {
        /// Requests that were complete.
        package var requests: [WireRequest] = []
        /// The heads of all requests, complete or not.
        package var heads: [WireRequest] = []
        package var isOpen = true
        /// A request has come whole and no byte of another is there. A connection that was just
        /// accepted was made for a request, which is on its way.
        package var isAtBoundary = false
        /// What was wrong with what came, other than its end.
        package var fault: WireFault?
    }

    package typealias Script = @Sendable (OriginConnection) throws -> Void

    /// As a configuration writes it.
    package let address: String
    package let port: UInt16
    private let listener: Int32
    private let tls: TLSContext?
    private let condition = NSCondition()
    private var logs: [ConnectionLog] = []
    /// Those that are open, by the number of their connection.
    private var wires: [Int: Wire] = [:]
    private var isStopped = false

    /// Answers every request with `200` and `ok`.
    package static let friendly: Script = { connection in
        while let request = try connection.nextRequest() {
            try connection.answer(200, body: "ok", to: request)
        }
    }

    /// Answers `/slow` once the gate is passed, and all else at once.
    package static func slow(until gate: Gate) -> Script {
        { connection in
            while let request = try connection.nextRequest() {
                if request.target == "/slow" { try gate.pass() }
                try connection.answer(200, body: "ok", to: request)
            }
        }
    }

    /// Listens on a port of this host, or on a Unix socket where a path is given.
    package init(
        path: String? = nil,
        tls: TLSContext? = nil,
        script: @escaping Script = TestOrigin.friendly
    ) throws {
        self.tls = tls
        if let path {
            listener = try LoopbackKit.listening(path: path)
            (address, port) = ("unix:" + path, 0)
        } else {
            (listener, port) = try LoopbackKit.listening()
            address = "127.0.0.1:\(port)"
        }
        // The script may hold what holds this origin, so only the threads have it.
        Thread.detachNewThread { [self] in acceptAll(script) }
    }

    /// Ends it: no more connections, and those that are open are cut.
    package func stop() {
        condition.withLock {
            isStopped = true
            for wire in wires.values { wire.cut() }
        }
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private func acceptAll(_ script: @escaping Script) {
        defer { Glibc.close(listener) }
        while Wire.isReady(listener, for: POLLIN, within: -1) {
            guard let (wire, number) = accept() else { return }
            let connection = OriginConnection(wire, number, of: self)
            Thread.detachNewThread { [self] in run(connection, script) }
        }
    }

    /// Accepts a connection and notes it at once: nobody may see it in neither place.
    private func accept() -> (wire: Wire, number: Int)? {
        condition.withLock {
            // It does not block, which suits a wire: that asks first whether something is there.
            let descriptor = clinux_accept(listener, nil, nil)
            guard descriptor >= 0 else { return nil }
            let session = try? tls.map { try TLSSession(accepting: $0) }
            let wire = Wire(descriptor: descriptor, tls: session)
            logs.append(ConnectionLog())
            wires[logs.count - 1] = wire
            // It was accepted before the end, and is noted behind it.
            if isStopped { wire.cut() }
            condition.broadcast()
            return (wire, logs.count - 1)
        }
    }

    private func run(_ connection: OriginConnection, _ script: Script) {
        var fault: WireFault?
        do {
            try script(connection)
        } catch WireFault.ended {
        } catch {
            fault = error as? WireFault ?? .failed("\(error)", 0)
        }
        // A close with bytes unread is a reset, which may overtake the last bytes that were sent.
        // A flood that is not taken does not hold it up for long.
        if connection.wire.isReadable(within: 0) {
            try? connection.wire.awaitTaken(within: 2_000)
        }
        connection.wire.close()
        change(connection.number) { log in
            wires[connection.number] = nil
            log.isOpen = false
            if fault != .reset, !isStopped { log.fault = fault }
        }
    }

    func change(_ number: Int, _ body: (inout ConnectionLog) -> Void) {
        condition.withLock {
            body(&logs[number])
            condition.broadcast()
        }
    }

    // MARK: What tests ask

    /// What came so far.
    package var connections: [ConnectionLog] { condition.withLock { logs } }

    /// All complete requests, by connection.
    package var requests: [WireRequest] { connections.flatMap(\.requests) }

    /// A moment: how many connections there were, and the heads and requests of those that were
    /// open.
    package struct Moment {
        fileprivate let count: Int
        fileprivate let open: [Int: (heads: Int, requests: Int)]
    }

    package var now: Moment {
        condition.withLock {
            var open: [Int: (heads: Int, requests: Int)] = [:]
            for number in wires.keys {
                open[number] = (logs[number].heads.count, logs[number].requests.count)
            }
            return Moment(count: logs.count, open: open)
        }
    }

    /// What came since, by connection. A test that plays thousands of cases to one origin asks for
    /// the new part alone.
    package func connections(since moment: Moment) -> [ConnectionLog] {
        condition.withLock {
            let older = moment.open.sorted { $0.key < $1.key }.map { number, seen in
                var log = logs[number]
                log.heads.removeFirst(seen.heads)
                log.requests.removeFirst(seen.requests)
                return log
            }
            return older + logs[moment.count...]
        }
    }

    /// Waits until no connection waits to be accepted, is in the middle of a request or has bytes
    /// that nobody has read; whether that came before the deadline.
    package func settles() -> Bool {
        wait { logs in
            wires.keys.allSatisfy { logs[$0].isAtBoundary }
                && !wires.values.contains { $0.isReadable(within: 0) }
                && !Wire.isReady(listener, for: POLLIN, within: 0)
        }
    }

    /// Waits until this holds of what came; whether it did before the deadline.
    package func wait(
        milliseconds: Int32 = Wire.patienceMilliseconds,
        until isTrue: ([ConnectionLog]) -> Bool
    ) -> Bool {
        let deadline = Date(timeIntervalSinceNow: Double(milliseconds) / 1000)
        return condition.withLock {
            while !isTrue(logs) {
                guard condition.wait(until: deadline) else { return isTrue(logs) }
            }
            return true
        }
    }
}
