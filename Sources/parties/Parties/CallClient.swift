import Cryptography
import Dispatch
import EventLoops
package import OutboundCalls
import Synchronization

/// Makes the calls to a party: performs the actions of a ``CallQueue``, on a queue of its own.
///
/// Nothing runs before the first call.
package final class CallClient<Party: CalledParty>: Sendable {
    private struct Board {
        var machine: CallQueue<Party>
        var askers: [CallLine.Ticket: @Sendable (CallReply) -> Void] = [:]
        var lastTicket: CallLine.Ticket = 0
        var tell: @Sendable (CallNotice<Party.Call>, _ detail: String?) -> Void = { _, _ in }
    }

    private let queue: DispatchQueue
    private let board: Mutex<Board>
    private let https: any HTTPSSending
    private let wallClock: @Sendable () -> Int64

    /// - name: of the queue, for debuggers.
    /// - https: makes the calls, and those of others.
    /// - wallClock: milliseconds since 1970.
    package init(
        named name: String,
        _ settings: Party.Settings,
        over https: any HTTPSSending,
        wallClock: @escaping @Sendable () -> Int64
    ) {
        queue = DispatchQueue(label: "portcullis.\(name)")
        board = Mutex(Board(machine: CallQueue(settings)))
        self.https = https
        self.wallClock = wallClock
    }

    /// Sets the function that gets notices for operators. It is called on the client's queue.
    package func watch(
        _ tell: @escaping @Sendable (CallNotice<Party.Call>, _ detail: String?) -> Void
    ) {
        board.withLock { $0.tell = tell }
    }

    /// Sends a call when rate, breaker and queue allow it.
    ///
    /// `done` is called exactly once, within `call.timeout`, on the client's queue; it must not
    /// wait.
    package func send(_ call: Party.Call, _ done: @escaping @Sendable (CallReply) -> Void) {
        queue.async { [self] in
            let ticket = board.withLock { board in
                board.lastTicket += 1
                board.askers[board.lastTicket] = done
                return board.lastTicket
            }
            let milliseconds = Int(clamping: call.timeout.milliseconds)
            change { $0.handedIn(ticket, call, at: $1) }
            guard board.withLock({ $0.askers[ticket] != nil }) else { return }
            queue.asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [self] in
                change { $0.timeIsUp(ticket, at: $1) }
            }
        }
    }

    /// Takes a new configuration.
    package func reload(_ settings: Party.Settings) {
        queue.async { [self] in change { $0.replaced(settings, at: $1) } }
    }

    /// Replies to all callers that no call is made any more, then calls `ended`. The calls under
    /// way end with the sender.
    package func stop(_ ended: @escaping @Sendable () -> Void) {
        queue.async { [self] in
            change { $0.stopped(at: $1) }
            ended()
        }
    }

    /// The counts, and the state of the hosts.
    package func read<Value>(_ look: (CallQueue<Party>) -> sending Value) -> sending Value {
        board.withLock { look($0.machine) }
    }

    /// Gives the machine an event, and performs its actions.
    private func change(
        detail: String? = nil,
        _ decide: (inout CallQueue<Party>, CallMoment) -> [CallQueue<Party>.Action]
    ) {
        dispatchPrecondition(condition: .onQueue(queue))
        let now = CallMoment(
            tick: MonotonicClock.nanoseconds,
            wall: wallClock() / 1_000,
            random: RandomBytes.word()
        )
        let actions = board.withLock { decide(&$0.machine, now) }
        for action in actions { perform(action, detail) }
    }

    private func perform(_ action: CallQueue<Party>.Action, _ detail: String?) {
        switch action {
        case .send(let ticket, let call): send(ticket, call)
        case .reply(let ticket, let reply):
            let asker = board.withLock { $0.askers.removeValue(forKey: ticket) }
            asker?(reply)
        case .wake(let host, let nanoseconds):
            let pause = DispatchTimeInterval.nanoseconds(Int(clamping: nanoseconds))
            queue.asyncAfter(deadline: .now() + pause) { [self] in
                change { $0.woken(host, at: $1) }
            }
        case .tell(let notice):
            let tell = board.withLock { $0.tell }
            tell(notice, detail)
        }
    }

    private func send(_ ticket: CallLine.Ticket, _ call: CallRequest) {
        https.send(HTTPSRequest(call)) { [self] result in
            let reply = CallReply(result)
            let detail: String? = if case .failure(let fault) = result { fault.detail } else { nil }
            queue.async { self.change(detail: detail) { $0.answered(ticket, reply, at: $1) } }
        }
    }
}

/// Makes the calls to Apple.
package typealias AppleClient = CallClient<AppleCalls>

extension CallClient: AppleCalling where Party == AppleCalls {}
