/// The connections of an origin's servers, where their number is limited, and the requests that
/// wait for one. Pure: ``OriginState`` shares it between event loops.
///
/// Every connection holds a place, from before its connect until it is closed: while it carries a
/// request or a tunnel, while it is idle in a pool, and while a request is retried. A place that
/// becomes free goes to the first waiter, so no new request takes it first.
struct ConnectionSlots: Sendable {
    /// One server.
    private struct Row {
        var max: Int
        var taken = 0
        /// Idle connections by event loop.
        var idle: [Int: Int] = [:]
        /// Whether the server is the origin's now.
        var isListed = true
    }

    /// The result of asking to wait.
    enum Entry: Equatable {
        /// Waits under this number.
        ///
        /// - yielding: which event loops should close an idle connection, to which server.
        /// - displaced: the waiter that had to leave for it.
        case waits(UInt64, yielding: [Idle], displaced: WaitingLine.Waiter?)
        /// A place has become free meanwhile.
        case room
        case full
    }

    struct Idle: Equatable, Sendable {
        let server: Int
        let loop: Int
    }

    /// What happens to a connection whose request is over.
    enum Rest: Equatable {
        /// It may be idle in its pool.
        case kept
        /// It is for this waiter of the same event loop.
        case given(UInt64)
        /// It is to be closed: a waiter of another event loop gets its place.
        case closes
    }

    private var rows: [Int: Row] = [:]
    private var line = WaitingLine()
    private var waitersMax = 0
    private var lastID: UInt64 = 0

    /// Takes the current limits of servers, and the limit of the line. Places that are taken stay
    /// taken.
    mutating func limit(_ limits: [Int: Int], waitersMax: Int) {
        self.waitersMax = waitersMax
        for (server, var row) in rows {
            row.isListed = limits[server] != nil
            row.max = limits[server] ?? row.max
            rows[server] = row.isListed || row.taken > 0 ? row : nil
        }
        for (server, max) in limits where rows[server] == nil { rows[server] = Row(max: max) }
    }

    // MARK: What is known

    var waiting: Int { line.count }

    /// Connections that a server has; `nil` where they are not limited.
    func connections(of server: Int) -> Int? {
        rows[server].flatMap { $0.isListed ? $0.taken : nil }
    }

    func hasRoom(_ server: Int) -> Bool { rows[server].map { $0.taken < $0.max } ?? true }

    // MARK: Places

    /// Takes a place where one is free.
    mutating func reserve(_ server: Int) -> Bool {
        guard hasRoom(server) else { return false }
        rows[server]?.taken += 1
        return true
    }

    /// A place is free again.
    ///
    /// - isOffered: whether a request may go to the server now.
    /// - Returns: the waiter that has the place now.
    mutating func freed(_ server: Int, isOffered: Bool) -> WaitingLine.Waiter? {
        guard var row = rows[server], row.taken > 0 else { return nil }
        row.taken -= 1
        rows[server] = row.isListed || row.taken > 0 ? row : nil
        return isOffered ? offer(server) : nil
    }

    /// Gives a free place to the first waiter that can use it.
    mutating func offer(_ server: Int) -> WaitingLine.Waiter? {
        guard let row = rows[server], row.isListed, row.taken < row.max,
            let waiter = line.first(for: server)
        else { return nil }
        rows[server]?.taken += 1
        line.serve(waiter)
        return waiter
    }

    // MARK: Idle connections

    /// A connection's request is over, and the connection could take another one.
    ///
    /// - isShareable: any request may use it.
    mutating func rests(_ server: Int, on loop: Int, isShareable: Bool) -> Rest {
        guard let row = rows[server] else { return .kept }
        guard row.isListed, row.taken <= row.max else { return .closes }
        if let waiter = line.first(for: server) {
            guard isShareable, waiter.loop == loop else { return .closes }
            line.serve(waiter)
            return .given(waiter.id)
        }
        rows[server]?.idle[loop, default: 0] += 1
        return .kept
    }

    /// Whether a new request may use an idle connection. While others wait, these get it.
    var lendsIdle: Bool { line.isEmpty }

    /// A connection is no longer idle.
    mutating func leftIdle(_ server: Int, on loop: Int) {
        guard let count = rows[server]?.idle[loop] else { return }
        rows[server]?.idle[loop] = count > 1 ? count - 1 : nil
    }

    // MARK: Waiting

    /// Waits for a place at one of these full servers.
    mutating func wait(wanted: [Int], refused: [Int], flow: Int, loop: Int) -> Entry {
        if wanted.contains(where: hasRoom) { return .room }
        lastID += 1
        let waiter = WaitingLine.Waiter(id: lastID, loop: loop, flow: flow, refused: refused)
        let displaced: WaitingLine.Waiter?
        switch line.enter(waiter, max: waitersMax) {
        case .entered: displaced = nil
        case .displaced(let other): displaced = other
        case .full: return .full
        }
        let idle = wanted.flatMap { server in
            (rows[server]?.idle ?? [:]).keys.sorted().map { Idle(server: server, loop: $0) }
        }
        return .waits(lastID, yielding: idle, displaced: displaced)
    }

    /// Ends a wait. Returns whether there was one.
    @discardableResult
    mutating func leave(_ id: UInt64, flow: Int) -> Bool { line.remove(id, of: flow) }

    /// Makes all waiters choose again.
    mutating func wakeAll() -> [WaitingLine.Waiter] { line.removeAll() }
}

/// A message to an event loop about places. ``ServerState/number`` names a server, and a waiter has
/// its number in the ``ConnectionSlots``.
enum PlaceCall: Sendable {
    /// The waiter has a place at the server.
    case granted(UInt64, server: Int)
    /// The waiter has the connection that was put aside for it.
    case given(UInt64, server: Int)
    /// The waiter must choose a server again.
    case again(UInt64)
    /// The waiter had to leave for another one.
    case displaced(UInt64)
    /// An idle connection to the server is to be closed if a request waits.
    case yield(server: Int)
}

/// The waiters for a place, in order: a bounded queue that is fair between flows.
///
/// Flows take turns, and a flow's waiters are served in the order in which they came. If the line
/// is full, a new waiter displaces the last waiter of the flow that has most of them, unless its
/// own flow has as many. So one client can't keep all others out.
struct WaitingLine {
    struct Waiter: Equatable, Sendable {
        let id: UInt64
        let loop: Int
        /// The flow of the client's address; see `FairQueue`.
        let flow: Int
        /// The numbers of servers that it can't use.
        var refused: [Int] = []
    }

    /// The result of adding a waiter.
    enum Entry: Equatable {
        case entered
        /// The new waiter has entered, and this one had to leave.
        case displaced(Waiter)
        case full
    }

    private var flows: [Int: [Waiter]] = [:]
    /// The flows that have waiters, in the order of their turns.
    private var turns: [Int] = []
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func enter(_ waiter: Waiter, max: Int) -> Entry {
        var displaced: Waiter?
        if count >= max {
            let longest = turns.max { length(of: $0) < length(of: $1) }
            guard let longest, length(of: longest) > length(of: waiter.flow) + 1,
                let last = flows[longest]?.last
            else { return .full }
            remove(last.id, of: longest)
            displaced = last
        }
        if flows[waiter.flow] == nil { turns.append(waiter.flow) }
        flows[waiter.flow, default: []].append(waiter)
        count += 1
        return displaced.map { .displaced($0) } ?? .entered
    }

    private func length(of flow: Int) -> Int { flows[flow]?.count ?? 0 }

    /// The next waiter that can use this server.
    func first(for server: Int) -> Waiter? {
        for flow in turns {
            let waiter = flows[flow]?.first { !$0.refused.contains(server) }
            if let waiter { return waiter }
        }
        return nil
    }

    /// A waiter got its place. The next turn is another flow's.
    mutating func serve(_ waiter: Waiter) {
        guard remove(waiter.id, of: waiter.flow) else { return }
        guard let place = turns.firstIndex(of: waiter.flow) else { return }
        turns.append(turns.remove(at: place))
    }

    /// Removes a waiter. Returns whether it was there.
    @discardableResult
    mutating func remove(_ id: UInt64, of flow: Int) -> Bool {
        guard var waiters = flows.removeValue(forKey: flow) else { return false }
        let place = waiters.firstIndex { $0.id == id }
        if let place {
            waiters.remove(at: place)
            count -= 1
        }
        if waiters.isEmpty { turns.removeAll { $0 == flow } } else { flows[flow] = waiters }
        return place != nil
    }

    /// Empties the line.
    mutating func removeAll() -> [Waiter] {
        let all = turns.flatMap { flows[$0] ?? [] }
        self = WaitingLine()
        return all
    }
}
