package import Telemetry

/// All calls to a party: the waiting ones, those under way, and the counts.
///
/// Its driver makes the calls, sets the timers and calls back the callers. It reports events to the
/// machine, and performs the returned actions in their order.
package struct CallQueue<Party: CalledParty>: Sendable {
    package typealias Ticket = CallLine.Ticket
    package typealias Call = Party.Call
    package typealias Notice = CallNotice<Call>

    package enum Action: Equatable, Sendable {
        /// Make this call, and report it with ``answered(_:_:_:)``.
        case send(Ticket, entry: CallRequest)
        /// Reply to the caller; the ticket is then forgotten.
        case reply(Ticket, CallReply)
        /// Call ``woken(_:at:)`` in this number of nanoseconds.
        case wake(Call.Host, UInt64)
        /// Notify operators.
        case tell(Notice)
    }

    private struct Entry {
        let call: Call
        let handedInAt: UInt64
        /// The request that was sent; `nil` while it waits.
        var sent: CallRequest?
        var isRepeated = false
    }

    package private(set) var party: Party
    private var entries: [Ticket: Entry] = [:]
    private var lines: [Call.Host: CallLine] = [:]
    /// Hosts for which a wake-up is due.
    private var wakes: Set<Call.Host> = []
    private var pace = NoticePace<CallTally<Call>.End>()
    private var isStopped = false
    package private(set) var tally = CallTally<Call>()

    package init(_ settings: Party.Settings) { party = Party(settings) }

    /// The state of the calls to each host that was ever called, in the order of metrics.
    package var standing: [(host: Call.Host, line: CallLine)] {
        lines.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    // MARK: Events

    /// A call was handed in. The driver calls ``timeIsUp(_:at:)`` after its timeout.
    package mutating func handedIn(_ ticket: Ticket, _ call: Call, at now: CallMoment) -> [Action] {
        let host = call.host
        func refused(_ fault: CallFailure) -> [Action] {
            let reply = CallReply.unsent(fault)
            tally.add(call, reply, nanoseconds: 0)
            return [.reply(ticket, reply)] + notices(call, reply: reply, now: now)
        }
        guard !isStopped else { return refused(.stopping) }
        if let obstacle = party.obstacle(to: call) { return refused(obstacle) }
        guard let limits = party.limits(of: host) else { return refused(.noHost) }
        var line = lines[host] ?? CallLine(limits)
        let before = line.condition
        let fault = line.offered(ticket, patience: call.timeout / 2, now: now.tick)
        lines[host] = line
        if let fault { return refused(fault) }
        entries[ticket] = Entry(call: call, handedInAt: now.tick)
        return change(of: host, from: before) + advanced(host, at: now)
    }

    /// A call that was sent has its answer, or failed.
    package mutating func answered(
        _ ticket: Ticket,
        _ reply: CallReply,
        at now: CallMoment
    ) -> [Action] {
        // A call whose time was up has been replied to, and its answer comes late.
        guard var entry = entries[ticket] else { return [] }
        if case .answered(status: 401, _, _) = reply, !entry.isRepeated, !isStopped,
            party.obstacle(to: entry.call) == nil, let sent = entry.sent,
            party.renews(sent, of: entry.call)
        {
            entry.isRepeated = true
            lines[entry.call.host]?.repeated(now: now.tick)
            return [send(ticket, entry: &entry, now: now)]
        }
        return ended(ticket, entry, with: reply, at: now)
    }

    /// A call's time is over.
    package mutating func timeIsUp(_ ticket: Ticket, at now: CallMoment) -> [Action] {
        guard let entry = entries[ticket] else { return [] }
        guard entry.sent == nil else {
            return ended(ticket, entry, with: .failed(.timeout), at: now)
        }
        _ = lines[entry.call.host]?.gaveUp(ticket, now: now.tick)
        return ended(ticket, entry, with: .unsent(.queueTimeout), at: now)
    }

    /// The time has passed that a ``Action/wake(_:_:)`` named.
    package mutating func woken(_ host: Call.Host, at now: CallMoment) -> [Action] {
        wakes.remove(host)
        return advanced(host, at: now)
    }

    /// The configuration was reloaded. Calls under way end as they began. Waiting calls follow the
    /// new configuration, or are not made.
    package mutating func replaced(_ next: Party.Settings, at now: CallMoment) -> [Action] {
        party.replace(by: next)
        var actions: [Action] = []
        var unmakeable: [(Ticket, Entry, CallFailure)] = []
        for (ticket, entry) in entries.sorted(by: { $0.key < $1.key }) where entry.sent == nil {
            let isGone = party.limits(of: entry.call.host) == nil
            let obstacle: CallFailure? = isGone ? .noHost : party.obstacle(to: entry.call)
            guard let obstacle else { continue }
            // All leave their lines first: the end of one lets the next one begin.
            _ = lines[entry.call.host]?.gaveUp(ticket, now: now.tick)
            unmakeable.append((ticket, entry, obstacle))
        }
        for (ticket, entry, obstacle) in unmakeable {
            actions += ended(ticket, entry, with: .unsent(obstacle), at: now)
        }
        for host in lines.keys.sorted() {
            if let limits = party.limits(of: host) {
                lines[host]?.limits = limits
                actions += advanced(host, at: now)
            } else if lines[host]?.underWayCount == 0 {
                lines[host] = nil
            }
        }
        return actions
    }

    /// The gateway ends: no further call is made, and waiting callers are answered.
    package mutating func stopped(at now: CallMoment) -> [Action] {
        isStopped = true
        for host in lines.keys.sorted() { _ = lines[host]?.cleared(now: now.tick) }
        return entries.sorted { $0.key < $1.key }.flatMap { ticket, entry in
            let reply: CallReply = entry.sent == nil ? .unsent(.stopping) : .failed(.stopping)
            return ended(ticket, entry, with: reply, at: now)
        }
    }

    // MARK: Steps

    /// Begins the calls that may begin.
    private mutating func advanced(_ host: Call.Host, at now: CallMoment) -> [Action] {
        var actions: [Action] = []
        while let step = lines[host]?.next(now: now.tick) {
            switch step {
            case .begin(let ticket):
                guard var entry = entries[ticket] else { continue }
                actions.append(send(ticket, entry: &entry, now: now))
            case .drop(let ticket): actions += unmade(ticket, .queueTimeout)
            case .wait(let pause):
                if wakes.insert(host).inserted { actions.append(.wake(host, pause)) }
                return actions
            case .idle: return actions
            }
        }
        return actions
    }

    private mutating func send(
        _ ticket: Ticket,
        entry: inout Entry,
        now: CallMoment
    ) -> Action {
        let call = entry.call
        var request = party.written(call, at: now.wall)
        let passed = Duration.nanoseconds(Int64(clamping: now.tick &- entry.handedInAt))
        request.timeout = max(call.timeout - passed, .milliseconds(1))
        request.avoidsOldConnections = lines[call.host]?.isDoubtful ?? false
        entry.sent = request
        entries[ticket] = entry
        return .send(ticket, entry: request)
    }

    private mutating func ended(
        _ ticket: Ticket,
        _ entry: Entry,
        with reply: CallReply,
        at now: CallMoment
    ) -> [Action] {
        entries[ticket] = nil
        tally.add(entry.call, reply, nanoseconds: now.tick &- entry.handedInAt)
        var actions = [Action.reply(ticket, reply)] + notices(entry.call, reply: reply, now: now)
        let host = entry.call.host
        guard let outcome = CallOutcome(reply, timeout: entry.call.timeout),
            var line = lines[host]
        else {
            return actions + advanced(host, at: now)
        }
        let before = line.condition
        let given = line.ended(ticket, outcome, now: now.tick, random: now.random)
        lines[host] = line
        actions += change(of: host, from: before)
        for other in given { actions += unmade(other, .breakerOpen) }
        return actions + advanced(host, at: now)
    }

    /// A call that its line has given up is not made. It has no notice of its own, since many end
    /// alike.
    private mutating func unmade(_ ticket: Ticket, _ fault: CallFailure) -> [Action] {
        guard let entry = entries.removeValue(forKey: ticket) else { return [] }
        let reply = CallReply.unsent(fault)
        // A call that was not begun has no duration.
        tally.add(entry.call, reply, nanoseconds: 0)
        return [.reply(ticket, reply)]
    }

    private func change(of host: Call.Host, from before: CallBreaker.Condition) -> [Action] {
        guard let after = lines[host]?.condition, after != before else { return [] }
        return [.tell(.breaker(host, after))]
    }

    /// The notice of the end of a call, if there is to be one. A failing host causes many ends that
    /// are alike.
    private mutating func notices(_ call: Call, reply: CallReply, now: CallMoment) -> [Action] {
        let end = CallTally<Call>.End(kind: call.kind, status: reply.statusText)
        guard let untold = pace.untold(of: end, now: now.tick) else { return [] }
        return [.tell(.ended(call.kind, reply.summary, untold: untold))]
    }
}

/// A notice for operators about calls to a party.
package enum CallNotice<Call: OutboundCall>: Hashable, Sendable {
    /// A call ended in this way; this number of calls ended alike since the last report.
    case ended(Call.Kind, CallReply.Summary, untold: UInt64)
    /// The host is in backoff, is tried again, or works again.
    case breaker(Call.Host, CallBreaker.Condition)
}

/// The counts of calls to a party.
package struct CallTally<Call: OutboundCall>: Sendable {
    /// The end of calls of one kind.
    package struct End: Comparable, Hashable, Sendable {
        package let kind: Call.Kind
        /// The status of the answer, or the word of the failure.
        package let status: String

        package static func < (left: End, right: End) -> Bool {
            (left.kind, left.status) < (right.kind, right.status)
        }
    }

    package private(set) var ends: [End: UInt64] = [:]
    /// The time from the hand-in to the reply, of calls that were begun; nanoseconds.
    package private(set) var durations: [Call.Family: Histogram] = [:]

    package init() {}

    package mutating func add(_ call: Call, _ reply: CallReply, nanoseconds: UInt64) {
        ends[End(kind: call.kind, status: reply.statusText), default: 0] &+= 1
        if case .unsent = reply { return }
        durations[call.family, default: Histogram()].add(nanoseconds)
    }

    /// The counts in a stable order.
    package var sortedEnds: [(end: End, count: UInt64)] {
        ends.sorted { $0.key < $1.key }.map { (end: $0.key, count: $0.value) }
    }
}
