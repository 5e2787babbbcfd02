import ConfigurationReading
import Dispatch
import EventLoops
import Glibc
import HTTPWire
import KeyStore
import Logging
import Proxy
import SQLiteKeyStore
import Services

/// Reports of lasting faults for the operator: once at their beginning, once at their end.
final class FaultReports: Sendable {
    private struct State {
        var shortage = AcceptShortage()
        /// Why the store can't be written, and why it can't be read.
        var writing = StateReport<JournalError?>(nil)
        var reading = StateReport<JournalError?>(nil)
    }

    private let plane: ControlPlane
    private let outputs: LogOutputs
    private let state: QueueBound<State>

    init(_ plane: ControlPlane, _ outputs: LogOutputs) {
        self.plane = plane
        self.outputs = outputs
        state = QueueBound(State(), on: plane.queue)
    }

    /// The store's transactions began to fail, or fail for another reason; `nil`: all changes are
    /// written.
    func storeChanged(_ error: JournalError?) {
        // Then reading fails as well, and its message says more.
        if error?.reason == .replaced { return }
        reportWriting(state.value.writing.changed(to: error, now: MonotonicClock.nanoseconds))
    }

    private func reportWriting(_ step: StateReport<JournalError?>.Step) {
        let path = plane.configuration.store.name
        switch step {
        case .none: break
        case .wait(let time):
            plane.perform(after: .nanoseconds(Int(clamping: time))) { [self] in
                reportWriting(state.value.writing.waited(now: MonotonicClock.nanoseconds))
            }
        case .report(nil, let leftOut):
            plane.log.notice(
                """
                the store \(path): can be written again; all changes that waited are on \
                disk\(Self.others(leftOut))
                """
            )
        case .report(let error?, let leftOut):
            let hint = StoreProblem(error, path).hint
            // A database is asked about each use.
            let word: LocalFault =
                if case .postgresql = plane.configuration.store {
                    .storeDegraded
                } else {
                    .storeUnwritable
                }
            plane.log.error(
                """
                the store \(path): can't be written, \(error); keys go on in memory, and it is \
                tried again and again; requests that wait for the disk are answered 503 \
                store-unavailable or as on_error says, enrolments 503; /readyz says \
                \(word.rawValue)\(Self.others(leftOut)); next: \(hint); more: portcullis help \
                PortcullisStoreFailing
                """
            )
        }
    }

    /// The store's changes can't be read, or for another reason; `nil`: they are read again.
    func storeReadChanged(_ error: JournalError?) {
        reportReading(state.value.reading.changed(to: error, now: MonotonicClock.nanoseconds))
    }

    private func reportReading(_ step: StateReport<JournalError?>.Step) {
        let path = plane.configuration.store.name
        switch step {
        case .none: break
        case .wait(let time):
            plane.perform(after: .nanoseconds(Int(clamping: time))) { [self] in
                reportReading(state.value.reading.waited(now: MonotonicClock.nanoseconds))
            }
        case .report(nil, let leftOut):
            plane.log.notice(
                """
                the store \(path): reads again; keys are answered as \
                before\(Self.others(leftOut))
                """
            )
        case .report(let error?, let leftOut):
            let hint = StoreProblem(error, path).hint
            plane.log.error(
                """
                the store \(path): can't be read, \(error); a key may be revoked that is not \
                known to be, so requests that are verified are answered 503 store-unavailable or \
                as on_error says; it is tried every second\(Self.others(leftOut)); next: \(hint); \
                more: portcullis help PortcullisStoreFailing
                """
            )
        }
    }

    /// The number of unreported changes of a state before a message.
    private static func others(_ leftOut: Int) -> String {
        leftOut == 0 ? "" : " (it changed \(leftOut) times more since the last message)"
    }

    /// A listener pauses, or `nil` when it has accepted all waiting clients.
    func acceptChanged(_ error: SocketError?) {
        switch state.value.shortage.changed(error, now: MonotonicClock.nanoseconds) {
        case .none: break
        case .began(let error):
            plane.log.error(
                """
                accepting pauses, \(error); \(DescriptorLimit.current) descriptors may be open, \
                \(DescriptorLimit.reserve) of them are kept for connections to origins; \
                clients wait until others have left; next: raise the limit (LimitNOFILE, ulimit \
                -n), or lower limits.connections or timeouts.idle; more: portcullis help \
                PortcullisOutOfDescriptors
                """
            )
        case .ended: plane.log.notice("all listeners accept connections again")
        }
    }

    /// Connections did not begin with a valid PROXY header.
    func proxiedFailed(_ fault: ProxiedFault) {
        let others = fault.count > 1 ? " (\(fault.count) in all since the last message)" : ""
        plane.log.warning(
            """
            a connection from \(fault.peerText) to a listener with proxy_protocol was closed, \
            \(fault.what)\(others); next: add the proxy to trusted_proxies and have it send the \
            header, or keep others away from the port
            """
        )
    }

    /// Clients have sent no certificate, or no valid one, to a listener that requires one.
    func certificateRefused(_ reason: TLSFailure.Reason, _ address: IPAddress, count: Int) {
        let others = count > 1 ? " (\(count) in all since the last message)" : ""
        let next =
            switch reason {
            case .certificateRevoked: "give it another certificate, unless it is to stay out"
            case .revocationUnknown: "give listen[].tls.client.crl the authority's current list"
            default: "give it a certificate of listen[].tls.client.ca"
            }
        plane.log.warning(
            """
            a client at \(address.text) was refused in the TLS handshake, \
            \(reason.rawValue)\(others); next: \(next)
            """
        )
    }

    /// Lines of the access log are being dropped, or were dropped.
    func accessLogChanged(_ notice: LossReport.Notice) {
        switch notice {
        case .none: break
        case .began:
            plane.log.error(
                """
                the access log can't be written, or not fast enough: lines are dropped; requests \
                go on; next: look at its disk, or at what reads standard output
                """
            )
        case .ended(let lines):
            plane.log.warning("the access log is written again; \(lines) lines were dropped")
        }
    }

    /// Refusals beyond their address's rate have no line. Their number is logged every ten seconds.
    func refusalsLeftOut(_ notice: LossReport.Notice) {
        switch notice {
        case .none: return
        case .began:
            plane.log.warning(
                """
                an address is refused more often than log.address_refusals: the access log has \
                only some of these lines from here on
                """
            )
        case .ended(let lines):
            plane.log.warning("\(lines) lines of refusals were left out of the access log")
        }
        let time = Int(clamping: LossReport.quietNanoseconds)
        plane.perform(after: .nanoseconds(time)) { [outputs] in outputs.refusalLosses.wrote() }
    }

    /// Messages were dropped. The beginning of the loss can't be reported, only its end.
    func messagesChanged(_ notice: LossReport.Notice) {
        guard case .ended(let lines) = notice else { return }
        plane.log.warning(
            "standard error was not read in time; \(lines) lines of this log were dropped"
        )
    }
}

/// Decides which shortages of the listeners are logged: the first one and its end, and at most one
/// per ``quietNanoseconds``, since they may come and go many times a second.
private struct AcceptShortage {
    enum Notice: Equatable {
        case none
        case began(SocketError)
        case ended
    }

    /// The time without a log of another shortage: ten seconds.
    static let quietNanoseconds: UInt64 = 10_000_000_000

    /// The number of paused listeners.
    private var count = 0
    private var toldAt: UInt64?
    private var isTold = false

    /// A listener began to pause, with the reason; or `nil` when it has accepted all waiting
    /// clients.
    mutating func changed(_ error: SocketError?, now: UInt64) -> Notice {
        guard let error else {
            count = max(count - 1, 0)
            guard count == 0, isTold else { return .none }
            isTold = false
            return .ended
        }
        count += 1
        guard !isTold else { return .none }
        if let toldAt, now &- toldAt < Self.quietNanoseconds { return .none }
        toldAt = now
        isTold = true
        return .began(error)
    }
}

/// Decides when a state that comes and goes is reported. Its beginning and its end are reported at
/// once. Further changes wait until ten seconds after the last report. The next report then has the
/// current state and the number of unreported changes.
struct StateReport<State: Equatable & Sendable>: Sendable {
    enum Step: Equatable {
        case none
        /// - leftOut: unreported changes since the last report.
        case report(State, leftOut: Int)
        /// Call ``waited(now:)`` after this time.
        case wait(nanoseconds: UInt64)
    }

    /// The time without another report of a state: ten seconds.
    static var quietNanoseconds: UInt64 { 10_000_000_000 }

    private let normal: State
    private var current: State
    private var reported: State
    private var reportedAt: UInt64?
    private var leftOut = 0
    private var isWaiting = false

    /// - normal: the initial state, which is not reported.
    init(_ normal: State) {
        self.normal = normal
        current = normal
        reported = normal
    }

    /// The state has changed, at monotonic nanoseconds.
    mutating func changed(to state: State, now: UInt64) -> Step {
        guard state != current else { return .none }
        current = state
        let passed = reportedAt.map { now &- $0 } ?? .max
        let isOver = state == normal && reported != normal && !isWaiting
        if isOver || passed >= Self.quietNanoseconds { return report(now) }
        leftOut += 1
        guard !isWaiting else { return .none }
        isWaiting = true
        return .wait(nanoseconds: Self.quietNanoseconds - passed)
    }

    /// The time is over.
    mutating func waited(now: UInt64) -> Step {
        isWaiting = false
        return leftOut > 0 ? report(now) : .none
    }

    private mutating func report(_ now: UInt64) -> Step {
        reportedAt = now
        reported = current
        defer { leftOut = 0 }
        // The report itself covers the last one.
        return .report(current, leftOut: max(leftOut - 1, 0))
    }
}
