package import KeyStore
package import OutboundCalls

/// All calls to Apple: the waiting ones, those under way, the tokens, and the counts.
///
/// Its driver makes the calls, sets the timers and calls back the callers. It reports events to the
/// machine, and performs the returned actions in their order.
package struct CallQueue: Sendable {
    package typealias Ticket = CallLine.Ticket

    /// The settings of the configuration.
    package struct Settings: Sendable {
        package var credentials: [AppleCredential]
        /// Whether the token of a call about a receipt follows the word Bearer.
        package var writesBearer: Bool
        package var hosts: [AppleHost: String]
        package var limits: CallLine.Limits

        package init(
            credentials: [AppleCredential],
            writesBearer: Bool,
            hosts: [AppleHost: String],
            limits: CallLine.Limits
        ) {
            self.credentials = credentials
            self.writesBearer = writesBearer
            self.hosts = hosts
            self.limits = limits
        }
    }

    package enum Action: Equatable, Sendable {
        /// Make this call, and report it with ``answered(_:_:_:)``.
        case send(Ticket, CallRequest)
        /// Reply to the caller; the ticket is then forgotten.
        case reply(Ticket, CallReply)
        /// Call ``woken(_:_:)`` in this number of nanoseconds.
        case wake(AppleHost, UInt64)
        /// Notify operators.
        case tell(CallNotice)
    }

    private struct Entry {
        let call: AppleCall
        let host: AppleHost
        var credential: AppleCredential
        let handedInAt: UInt64
        /// The token that it was sent with; `nil` while it waits.
        var token: ProviderToken?
        var hasNewToken = false
    }

    private var settings: Settings
    private var entries: [Ticket: Entry] = [:]
    private var lines: [AppleHost: CallLine] = [:]
    private var tokens: [AppleCredential: ProviderToken] = [:]
    /// Hosts for which a wake-up is due.
    private var wakes: Set<AppleHost> = []
    private var pace = NoticePace<CallEndKind>()
    private var isStopped = false
    package private(set) var tally = AppleTally()

    package init(_ settings: Settings) { self.settings = settings }

    /// The state of the calls to each host that was ever called, in the order of metrics.
    package var standing: [(host: AppleHost, line: CallLine)] {
        AppleHost.all.compactMap { host in lines[host].map { (host, $0) } }
    }

    // MARK: Events

    /// A call was handed in. The driver calls ``timeIsUp(_:_:)`` after its timeout.
    package mutating func handedIn(
        _ ticket: Ticket,
        _ call: AppleCall,
        _ now: CallMoment
    ) -> [Action] {
        let host = AppleHost(call.service.family, call.environment)
        func refused(_ fault: CallFailure) -> [Action] {
            let reply = CallReply.unsent(fault)
            tally.add(call, reply, nanoseconds: 0)
            return [.reply(ticket, reply)]
                + [pace.notice(call, reply, now: now.tick)].compactMap { $0.map(Action.tell) }
        }
        guard !isStopped else { return refused(.stopping) }
        guard let credential = credential(of: call) else { return refused(.noCredential) }
        guard settings.hosts[host] != nil else { return refused(.noHost) }
        var line = lines[host] ?? CallLine(settings.limits)
        let before = line.condition
        let fault = line.offered(ticket, patience: call.timeout / 2, now: now.tick)
        lines[host] = line
        if let fault { return refused(fault) }
        entries[ticket] = Entry(
            call: call,
            host: host,
            credential: credential,
            handedInAt: now.tick
        )
        return change(of: host, from: before) + advanced(host, now)
    }

    /// A call that was sent has its answer, or failed.
    package mutating func answered(
        _ ticket: Ticket,
        _ reply: CallReply,
        _ now: CallMoment
    ) -> [Action] {
        // A call whose time was up has been replied to, and its answer comes late.
        guard var entry = entries[ticket] else { return [] }
        if case .answered(status: 401, _, _) = reply, !entry.hasNewToken, !isStopped,
            settings.hosts[entry.host] != nil, let credential = credential(of: entry.call)
        {
            // Another call may have made a new token meanwhile.
            if tokens[credential] == entry.token { tokens[credential] = nil }
            (entry.credential, entry.hasNewToken) = (credential, true)
            lines[entry.host]?.repeated(now: now.tick)
            return [send(ticket, &entry, now)]
        }
        return ended(ticket, entry, reply, now)
    }

    /// A call's time is over.
    package mutating func timeIsUp(_ ticket: Ticket, _ now: CallMoment) -> [Action] {
        guard let entry = entries[ticket] else { return [] }
        guard entry.token == nil else { return ended(ticket, entry, .failed(.timeout), now) }
        return givenUp(ticket, entry, .queueTimeout, now)
    }

    /// The time has passed that a ``Action/wake(_:_:)`` named.
    package mutating func woken(_ host: AppleHost, _ now: CallMoment) -> [Action] {
        wakes.remove(host)
        return advanced(host, now)
    }

    /// The configuration was reloaded. Calls under way end as they began. Waiting calls follow the
    /// new configuration, or are not made. An unchanged key keeps its token.
    package mutating func replaced(_ next: Settings, _ now: CallMoment) -> [Action] {
        settings = next
        tokens = tokens.filter { next.credentials.contains($0.key) }
        var actions: [Action] = []
        for (ticket, entry) in entries.sorted(by: { $0.key < $1.key }) where entry.token == nil {
            if next.hosts[entry.host] == nil {
                actions += givenUp(ticket, entry, .noHost, now)
            } else if let credential = credential(of: entry.call) {
                entries[ticket]?.credential = credential
            } else {
                actions += givenUp(ticket, entry, .noCredential, now)
            }
        }
        for host in AppleHost.all where lines[host] != nil {
            lines[host]?.limits = next.limits
            actions += advanced(host, now)
        }
        return actions
    }

    /// The gateway ends: no further call is made, and waiting callers are answered.
    package mutating func stopped(_ now: CallMoment) -> [Action] {
        isStopped = true
        for host in AppleHost.all { _ = lines[host]?.cleared(now: now.tick) }
        return entries.sorted { $0.key < $1.key }.flatMap { ticket, entry in
            let reply: CallReply =
                entry.token == nil ? .unsent(.stopping) : .failed(.stopping)
            return ended(ticket, entry, reply, now)
        }
    }

    // MARK: Steps

    private func credential(of call: AppleCall) -> AppleCredential? {
        guard let team = call.teamID else {
            return settings.credentials.count == 1 ? settings.credentials.first : nil
        }
        return settings.credentials.first { $0.teamID == team }
    }

    /// Begins the calls that may begin.
    private mutating func advanced(_ host: AppleHost, _ now: CallMoment) -> [Action] {
        var actions: [Action] = []
        while let step = lines[host]?.next(now: now.tick) {
            switch step {
            case .begin(let ticket):
                guard var entry = entries[ticket] else { continue }
                actions.append(send(ticket, &entry, now))
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
        _ entry: inout Entry,
        _ now: CallMoment
    ) -> Action {
        let token = token(of: entry.credential, now)
        entry.token = token
        entries[ticket] = entry
        let call = entry.call
        let isBearer = call.service.family == .deviceCheck || settings.writesBearer
        let passed = Duration.nanoseconds(Int64(clamping: now.tick &- entry.handedInAt))
        return .send(
            ticket,
            CallRequest(
                url: (settings.hosts[entry.host] ?? "") + call.service.path,
                authorization: isBearer ? "Bearer \(token.text)" : token.text,
                contentType: call.contentType,
                content: call.body,
                timeout: max(call.timeout - passed, .milliseconds(1)),
                avoidsOldConnections: lines[entry.host]?.isDoubtful ?? false
            )
        )
    }

    private mutating func token(of credential: AppleCredential, _ now: CallMoment) -> ProviderToken
    {
        if let token = tokens[credential], token.isGood(at: now.wall) { return token }
        let token = ProviderToken(credential, at: now.wall)
        tokens[credential] = token
        tally.addToken()
        return token
    }

    private mutating func ended(
        _ ticket: Ticket,
        _ entry: Entry,
        _ reply: CallReply,
        _ now: CallMoment
    ) -> [Action] {
        entries[ticket] = nil
        tally.add(entry.call, reply, nanoseconds: now.tick &- entry.handedInAt)
        var actions = [Action.reply(ticket, reply)]
        if let notice = pace.notice(entry.call, reply, now: now.tick) {
            actions.append(.tell(notice))
        }
        guard let outcome = CallOutcome(reply, timeout: entry.call.timeout),
            var line = lines[entry.host]
        else {
            return actions + advanced(entry.host, now)
        }
        let before = line.condition
        let given = line.ended(ticket, outcome, now: now.tick, random: now.random)
        lines[entry.host] = line
        actions += change(of: entry.host, from: before)
        for other in given { actions += unmade(other, .breakerOpen) }
        return actions + advanced(entry.host, now)
    }

    /// A waiting call is removed from its line.
    private mutating func givenUp(
        _ ticket: Ticket,
        _ entry: Entry,
        _ fault: CallFailure,
        _ now: CallMoment
    ) -> [Action] {
        _ = lines[entry.host]?.gaveUp(ticket, now: now.tick)
        return ended(ticket, entry, .unsent(fault), now)
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

    private func change(of host: AppleHost, from before: CallBreaker.Condition) -> [Action] {
        guard let after = lines[host]?.condition, after != before else { return [] }
        return [.tell(.breaker(host, after))]
    }
}

/// A call in the form that is sent.
package struct CallRequest: Hashable, Sendable {
    package let url: String
    /// The value of the field `Authorization`. It never belongs into a log.
    package let authorization: String
    package let contentType: String
    package let content: [UInt8]
    /// The rest of the call's time.
    package let timeout: Duration
    /// Whether the last call to the host failed, so that this one does not reuse its connection.
    package let avoidsOldConnections: Bool
}

/// A notice for operators about calls to Apple.
package enum CallNotice: Hashable, Sendable {
    /// A call ended in this way; this number of calls ended alike since the last report.
    case ended(AppleService, KeyEnvironment, CallReply.Summary, untold: UInt64)
    /// The host is in backoff, is tried again, or works again.
    case breaker(AppleHost, CallBreaker.Condition)
}

/// The common part of the ends of calls that are alike. A failing host causes many of them.
struct CallEndKind: Hashable, Sendable {
    let service: AppleService
    let environment: KeyEnvironment
    let status: String
}

extension NoticePace<CallEndKind> {
    /// The notice of this end; `nil` for none.
    mutating func notice(_ call: AppleCall, _ reply: CallReply, now: UInt64) -> CallNotice? {
        let kind = CallEndKind(
            service: call.service,
            environment: call.environment,
            status: reply.statusText
        )
        return untold(of: kind, now: now).map { untold in
            .ended(call.service, call.environment, reply.summary, untold: untold)
        }
    }
}
