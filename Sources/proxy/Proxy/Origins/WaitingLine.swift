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
