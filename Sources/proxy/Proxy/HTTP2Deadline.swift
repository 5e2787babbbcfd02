import EventLoops
import HTTPWire

// What HTTP/2 connections to clients and to servers have in common.

/// The deadline of a connection itself, beside those of its streams: all share the endpoint's.
struct HTTP2Deadline<Awaited> {
    /// What the connection itself waits for.
    var awaited: Awaited
    /// Milliseconds of ``EventLoop/now``; `nil` for none.
    private(set) var own: UInt64?
    /// The time of the endpoint's deadline: that of the earliest deadline, or before it.
    private var armedAt: UInt64?

    init(_ awaited: Awaited) { self.awaited = awaited }

    mutating func allow(_ what: Awaited, milliseconds: UInt64, on connection: Connection) {
        awaited = what
        let at = connection.loop.now &+ milliseconds
        own = at
        arm(at, on: connection)
    }

    /// Waits without a deadline.
    mutating func expect(_ what: Awaited) {
        awaited = what
        own = nil
    }

    /// Makes the endpoint's deadline pass at this time at the latest.
    mutating func arm(_ at: UInt64, on connection: Connection) {
        if let armedAt, armedAt <= at { return }
        armedAt = at
        connection.setDeadline(milliseconds: at - min(at, connection.loop.now))
    }

    /// The endpoint's deadline has passed. Returns whether that of the connection itself has.
    mutating func passed(now: UInt64) -> Bool {
        armedAt = nil
        guard let own, own <= now else { return false }
        self.own = nil
        return true
    }
}

extension Connection {
    /// The most bytes of one write.
    private static var writeMax: Int { 64 << 10 }

    /// Hands a session's bytes to the socket, until there are none or some wait.
    ///
    /// - fill: takes bytes of the session, at most this number.
    func write(
        _ fill: (inout [UInt8], Int) throws(HTTP2End.Fault) -> Void
    ) throws(HTTP2End.Fault) -> WriteOutcome {
        var out = loop.takeOutput()
        defer { loop.giveBack(&out) }
        while true {
            try fill(&out, Self.writeMax)
            guard !out.isEmpty else { return .sent }
            let isAll = out.count < Self.writeMax
            let outcome = write(out.span)
            out.removeAll(keepingCapacity: true)
            guard case .sent = outcome, !isAll else { return outcome }
        }
    }
}
