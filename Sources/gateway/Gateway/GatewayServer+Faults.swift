import ConfigurationReading
import Dispatch
import Glibc
import HTTPWire
import KeyCatalog
import KeyStore
import Lanes
import Logging
import Proxy
import SQLiteKeyStore
import TLSSession

// What the operator is told of faults that last: once when they begin, once when they are over.
extension GatewayServer {
    /// There was no database, and one was made.
    static func tell(
        _ birthplace: StorePreview.Birthplace,
        _ configuration: GatewayConfiguration,
        _ log: Logger
    ) {
        let path = configuration.store.name
        switch birthplace {
        case .taken: break
        case .empty:
            log.notice(
                """
                the store \(path): there was none, and a new one without keys is made; from now \
                on store.must_exist: true refuses a start where it is missing, as when its disk \
                is not mounted
                """
            )
        case .left(let file):
            log.warning(
                """
                the store \(path): a new one without keys is made, although \(file) is left of \
                one that was here; next: if it is lost, restore a backup (portcullis store \
                restore); store.must_exist: true refuses such a start
                """
            )
        }
    }

    /// The store's transactions began to fail, or fail for another reason; `nil`: all is written.
    func storeChanged(_ error: JournalError?) {
        dispatchPrecondition(condition: .onQueue(control))
        // Reading fails for it as well, and says more.
        if error?.reason == .replaced { return }
        reportWriting(writingReport.changed(to: error, now: MonotonicClock.nanoseconds))
    }

    private func reportWriting(_ step: StateReport<JournalError?>.Step) {
        let path = configuration.store.name
        switch step {
        case .none: break
        case .wait(let time):
            control.asyncAfter(deadline: .now() + .nanoseconds(Int(clamping: time))) { [self] in
                reportWriting(writingReport.waited(now: MonotonicClock.nanoseconds))
            }
        case .report(nil, let leftOut):
            log.notice(
                """
                the store \(path): can be written again; all changes that waited are on \
                disk\(Self.others(leftOut))
                """
            )
        case .report(let error?, let leftOut):
            let hint = StoreProblem(error, path).hint
            log.error(
                """
                the store \(path): can't be written, \(error); keys go on in memory, and it is \
                tried again and again; requests that wait for the disk are answered 503 \
                store-unavailable or as on_error says, enrolments 503\(Self.others(leftOut)); \
                next: \(hint)
                """
            )
        }
    }

    /// The store's changes can't be read, or for another reason; `nil`: they are read again.
    func storeReadChanged(_ error: JournalError?) {
        dispatchPrecondition(condition: .onQueue(control))
        reportReading(readingReport.changed(to: error, now: MonotonicClock.nanoseconds))
    }

    private func reportReading(_ step: StateReport<JournalError?>.Step) {
        let path = configuration.store.name
        switch step {
        case .none: break
        case .wait(let time):
            control.asyncAfter(deadline: .now() + .nanoseconds(Int(clamping: time))) { [self] in
                reportReading(readingReport.waited(now: MonotonicClock.nanoseconds))
            }
        case .report(nil, let leftOut):
            log.notice(
                """
                the store \(path): reads again; keys are answered as \
                before\(Self.others(leftOut))
                """
            )
        case .report(let error?, let leftOut):
            let hint = StoreProblem(error, path).hint
            log.error(
                """
                the store \(path): can't be read, \(error); a key may be revoked that is not \
                known to be, so requests that are verified are answered 503 store-unavailable or \
                as on_error says; it is tried every second\(Self.others(leftOut)); next: \(hint)
                """
            )
        }
    }

    /// How many changes of a state were left out before a message.
    private static func others(_ leftOut: Int) -> String {
        leftOut == 0 ? "" : " (it changed \(leftOut) times more since the last message)"
    }

    /// A listener pauses, or, `nil`, has taken all who waited.
    func acceptChanged(_ error: SocketError?) {
        dispatchPrecondition(condition: .onQueue(control))
        switch shortage.changed(error, now: MonotonicClock.nanoseconds) {
        case .none: break
        case .began(let error):
            log.error(
                """
                accepting pauses, \(error); \(DescriptorLimit.current) descriptors may be open, \
                \(DescriptorLimit.reserve) of them are kept for connections to origins; \
                clients wait until others have left; next: raise the limit (LimitNOFILE, ulimit \
                -n), or lower limits.connections or timeouts.idle
                """
            )
        case .ended: log.notice("all listeners accept connections again")
        }
    }

    /// Connections did not begin with a PROXY header that counts.
    func proxiedFailed(_ fault: ProxiedFault) {
        dispatchPrecondition(condition: .onQueue(control))
        let others = fault.count > 1 ? " (\(fault.count) in all since the last message)" : ""
        log.warning(
            """
            a connection from \(fault.peerText) to a listener with proxy_protocol was closed, \
            \(fault.what)\(others); next: add the proxy to trusted_proxies and have it send the \
            header, or keep others away from the port
            """
        )
    }

    /// Clients have shown no certificate to a listener that requires one, or none that counts.
    func certificateRefused(_ reason: TLSFailure.Reason, _ address: IPAddress, _ count: Int) {
        dispatchPrecondition(condition: .onQueue(control))
        let others = count > 1 ? " (\(count) in all since the last message)" : ""
        log.warning(
            """
            a client at \(address.text) was refused in the TLS handshake, \
            \(reason.rawValue)\(others); next: give it a certificate of listen[].tls.client.ca
            """
        )
    }

    /// Lines of the access log are dropped, or were.
    func accessLogChanged(_ notice: LossReport.Notice) {
        dispatchPrecondition(condition: .onQueue(control))
        switch notice {
        case .none: break
        case .began:
            log.error(
                """
                the access log can't be written, or not fast enough: lines are dropped; requests \
                go on; next: look at its disk, or at what reads standard output
                """
            )
        case .ended(let lines):
            log.warning("the access log is written again; \(lines) lines were dropped")
        }
    }

    /// Refusals beyond their address's rate have no line. How many, is said every ten seconds.
    func refusalsLeftOut(_ notice: LossReport.Notice) {
        dispatchPrecondition(condition: .onQueue(control))
        switch notice {
        case .none: return
        case .began:
            log.warning(
                """
                an address is refused more often than log.address_refusals: the access log has \
                only some of these lines from here on
                """
            )
        case .ended(let lines):
            log.warning("\(lines) lines of refusals were left out of the access log")
        }
        let time = Int(clamping: LossReport.quietNanoseconds)
        control.asyncAfter(deadline: .now() + .nanoseconds(time)) { [outputs] in
            outputs.refusalLosses.wrote()
        }
    }

    /// Messages were dropped. That they begin to be, they can't say.
    func messagesChanged(_ notice: LossReport.Notice) {
        dispatchPrecondition(condition: .onQueue(control))
        guard case .ended(let lines) = notice else { return }
        log.warning("standard error was not read in time; \(lines) lines of this log were dropped")
    }
}
