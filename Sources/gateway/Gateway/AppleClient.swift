import AppleServices
import ConfigurationReading
import Cryptography
import Dispatch
import EventLoops
import HTTPSCalls
import OutboundCalls
import Synchronization
import Verification

/// Makes the calls to Apple: performs the actions of a ``CallQueue``, on a queue of its own.
///
/// Nothing runs before the first call.
final class AppleClient: AppleCalling {
    private struct Board {
        var machine: CallQueue
        /// Takes the reply of each call.
        var askers: [CallQueue.Ticket: @Sendable (CallReply) -> Void] = [:]
        var lastTicket: CallQueue.Ticket = 0
        var transport: Transport
        var tell: @Sendable (CallNotice, _ detail: String?) -> Void = { _, _ in }
    }

    /// The transport of the calls.
    private struct Transport {
        var trust: HTTPSRequest.Trust
        var proxy: String?

        init(_ settings: AppleSettings) {
            trust = settings.roots.map { .pem($0) } ?? .system
            proxy = settings.proxy
        }
    }

    /// The time that the end of the process waits for ``stop(_:)``: libcurl before 7.87 waits for
    /// running look-ups of names.
    static let stopTime = DispatchTimeInterval.seconds(5)

    private let queue = DispatchQueue(label: "portcullis.apple")
    private let board: Mutex<Board>
    /// Makes the calls, those to Google too; ``stop(_:)`` ends all of them.
    let https = HTTPSCalls()
    private let wallClock: @Sendable () -> Int64

    /// - wallClock: milliseconds since 1970.
    init(_ settings: AppleSettings, wallClock: @escaping @Sendable () -> Int64) {
        board = Mutex(
            Board(machine: CallQueue(settings.machine), transport: Transport(settings))
        )
        self.wallClock = wallClock
    }

    /// Sets the function that gets notices for operators. It is called on the client's queue.
    func watch(_ tell: @escaping @Sendable (CallNotice, _ detail: String?) -> Void) {
        board.withLock { $0.tell = tell }
    }

    func send(_ call: AppleCall, _ done: @escaping @Sendable (CallReply) -> Void) {
        queue.async { [self] in
            let ticket = board.withLock { board in
                board.lastTicket += 1
                board.askers[board.lastTicket] = done
                return board.lastTicket
            }
            let milliseconds = Int(clamping: call.timeout.milliseconds)
            change { $0.handedIn(ticket, call, $1) }
            guard board.withLock({ $0.askers[ticket] != nil }) else { return }
            queue.asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [self] in
                change { $0.timeIsUp(ticket, $1) }
            }
        }
    }

    /// Takes a new configuration.
    func reload(_ settings: AppleSettings) {
        queue.async { [self] in
            board.withLock { $0.transport = Transport(settings) }
            change { $0.replaced(settings.machine, $1) }
        }
    }

    /// Replies to all waiting callers that no call is made any more, and ends the calls under way.
    ///
    /// `ended` is called when no thread of the calls runs any more, since libraries clean up at the
    /// end of a process.
    func stop(_ ended: @escaping @Sendable () -> Void) {
        queue.async { [self] in
            change { $0.stopped($1) }
            https.stop(ended)
        }
    }

    /// The counts, and the state of the hosts.
    func read<Value>(_ look: (CallQueue) -> sending Value) -> sending Value {
        board.withLock { look($0.machine) }
    }

    /// Gives the machine an event, and performs its actions.
    private func change(
        detail: String? = nil,
        _ decide: (inout CallQueue, CallMoment) -> [CallQueue.Action]
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

    private func perform(_ action: CallQueue.Action, _ detail: String?) {
        switch action {
        case .send(let ticket, let call): send(ticket, call)
        case .reply(let ticket, let reply):
            let asker = board.withLock { $0.askers.removeValue(forKey: ticket) }
            asker?(reply)
        case .wake(let host, let nanoseconds):
            let pause = DispatchTimeInterval.nanoseconds(Int(clamping: nanoseconds))
            queue.asyncAfter(deadline: .now() + pause) { [self] in
                change { $0.woken(host, $1) }
            }
        case .tell(let notice):
            let tell = board.withLock { $0.tell }
            tell(notice, detail)
        }
    }

    private func send(_ ticket: CallQueue.Ticket, _ call: CallRequest) {
        let transport = board.withLock { $0.transport }
        var request = HTTPSRequest(
            url: call.url,
            contentType: call.contentType,
            content: call.content,
            timeout: call.timeout
        )
        request.fields = [("Authorization", call.authorization)]
        request.trust = transport.trust
        request.proxy = transport.proxy
        request.avoidsOldConnections = call.avoidsOldConnections
        https.send(request) { [self] result in
            let (reply, detail) = Self.reply(result)
            queue.async { self.change(detail: detail) { $0.answered(ticket, reply, $1) } }
        }
    }

    private static func reply(
        _ result: Result<HTTPSAnswer, HTTPSFault>
    ) -> (reply: CallReply, detail: String?) {
        switch result {
        case .success(let answer):
            let reply = CallReply.answered(
                status: answer.status,
                retryAfter: answer.retryAfter,
                body: answer.content
            )
            return (reply, nil)
        case .failure(let fault): return (.failed(CallFailure(fault.reason)), fault.detail)
        }
    }
}

extension CallFailure {
    init(_ reason: HTTPSFault.Reason) {
        switch reason {
        case .unreachable: self = .unreachable
        case .tls: self = .tls
        case .timeout: self = .timeout
        case .broken: self = .broken
        case .answerTooLong: self = .answerTooLong
        case .garbled: self = .garbled
        case .stopped: self = .stopping
        }
    }
}

extension AppleSettings {
    fileprivate var machine: CallQueue.Settings {
        CallQueue.Settings(
            credentials: credentials,
            writesBearer: authorization == .bearer,
            hosts: hosts,
            limits: CallLine.Limits(
                concurrent: concurrent,
                queue: queue,
                rate: TokenRate(perSecond, burst: max(perSecond / 10, 1))
            )
        )
    }
}
