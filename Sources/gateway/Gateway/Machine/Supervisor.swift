import Dispatch
import EventLoops
import Glibc
import Synchronization

/// The program that started the process and watches over it: systemd, or another one with its
/// protocol. It gets the state of the gateway (sd_notify(3), systemd.service(5)).
///
/// Each message is one datagram of text, so libsystemd is not needed.
package struct Supervisor: Sendable {
    /// A message to it.
    enum Notice {
        /// The start, or a reload, has ended.
        case ready
        /// A reload begins, at a moment of CLOCK_MONOTONIC in nanoseconds.
        case reloading(at: UInt64)
        /// The end begins.
        case stopping
        /// All event loops have answered.
        case alive
        /// The process that is the service from now on.
        case mainProcess(Int32)

        fileprivate var lines: String {
            switch self {
            case .ready: "READY=1"
            case .reloading(let nanoseconds): "RELOADING=1\nMONOTONIC_USEC=\(nanoseconds / 1_000)"
            case .stopping: "STOPPING=1"
            case .alive: "WATCHDOG=1"
            case .mainProcess(let number): "MAINPID=\(number)"
            }
        }
    }

    private let datagrams: DatagramSender
    /// The environment with which another process reaches the same manager.
    let environment: [String: String]
    /// Microseconds within which it expects a sign of life; `nil` for never.
    let watchdogMicroseconds: UInt64?
    /// Sending may have to wait for the manager, and must not block another queue.
    private let queue = DispatchQueue(label: "portcullis.supervisor")

    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`; `nil` without the first.
    ///
    /// - Throws: when the socket can't be used, with the fault.
    package init?(_ environment: [String: String], process: Int32 = getpid()) throws(GatewayError) {
        guard let name = environment["NOTIFY_SOCKET"] else { return nil }
        let address =
            name.hasPrefix("@")
            ? SocketAddress(abstractName: String(name.dropFirst())) : SocketAddress(unixPath: name)
        guard name.hasPrefix("@") || name.hasPrefix("/"), let address else {
            throw Self.refusal(name, "which is neither a path nor an abstract name")
        }
        do throws(SocketError) {
            datagrams = try DatagramSender(to: address)
        } catch {
            throw Self.refusal(name, "\(error)")
        }
        let isMeant = environment["WATCHDOG_PID"].map { Int32($0) == process } ?? true
        let time = environment["WATCHDOG_USEC"].flatMap { UInt64($0) } ?? 0
        watchdogMicroseconds = isMeant && time > 0 ? time : nil
        self.environment = ["NOTIFY_SOCKET": name]
            .merging(isMeant && time > 0 ? ["WATCHDOG_USEC": String(time)] : [:]) { $1 }
    }

    private static func refusal(_ name: String, _ detail: String) -> GatewayError {
        GatewayError(
            "NOTIFY_SOCKET is \(name), \(detail)",
            hint: "Start the gateway without it, or with the socket of a service manager."
        )
    }

    /// Sends a message; messages keep their order. A message that can't be sent is lost, as
    /// sd_notify(3) advises: a service does not depend on its manager.
    func tell(_ notice: Notice, status: String? = nil) {
        let status = status.map { "\nSTATUS=" + $0.replacing("\n", with: " ") } ?? ""
        let text = notice.lines + status
        queue.async { [datagrams] in datagrams.send(Array(text.utf8)) }
    }

    /// Returns once all messages are sent. Otherwise the end of the process would lose them.
    func drain() { queue.sync {} }

    /// - Returns: whether all messages are sent, which is so unless the manager hangs.
    func drain(within time: DispatchTimeInterval) -> Bool {
        let sent = DispatchGroup()
        queue.async(group: sent) {}
        return sent.wait(timeout: .now() + time) == .success
    }
}

/// Reports life at once, then after each interval, until it ends.
final class Pulse: Sendable {
    private let queue = DispatchQueue(label: "portcullis.pulse")
    private let hasEnded = Mutex(false)
    private let interval: DispatchTimeInterval
    private let say: @Sendable () -> Void

    init(every interval: DispatchTimeInterval, _ say: @escaping @Sendable () -> Void) {
        (self.interval, self.say) = (interval, say)
        queue.async { self.beat() }
    }

    private func beat() {
        let goesOn = hasEnded.withLock { hasEnded in
            if !hasEnded { say() }
            return !hasEnded
        }
        if goesOn { queue.asyncAfter(deadline: .now() + interval) { self.beat() } }
    }

    /// After this returns, no report follows.
    func end() { hasEnded.withLock { $0 = true } }
}
