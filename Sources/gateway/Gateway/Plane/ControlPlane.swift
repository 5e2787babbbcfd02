import ConfigurationReading
import Dispatch
import EventLoops
import Logging

/// The shared state of a running gateway's parts: the queue on which their state lives, the event
/// loops, the log, and the configuration in use.
///
/// Each part is an object that owns its state on this queue: `Certificates`, `OriginDirectory`,
/// `Rollouts`, `Guards`, `Reporting`, `StoreUpkeep`, `FaultReports`, `Reloads` and `Lifecycle`.
/// `GatewayServer` wires them.
final class ControlPlane: Sendable {
    /// The progress of an upgrade.
    enum Upgrading {
        /// Leaves to `running`.
        case none
        /// Another process starts. Leaves to `none`, `handedOver`.
        case running
        /// Another process serves, and decides for this one, which drains.
        case handedOver
    }

    private struct State {
        var log: Logger
        var configuration: GatewayConfiguration
        var ending = Ending()
        var upgrading = Upgrading.none
        var isDrained = false
    }

    let queue: DispatchQueue
    /// The configuration's file, for reloads and messages.
    let file: String
    let surroundings: GatewaySurroundings
    let loops: [LoopUnit]
    /// Seconds since 1970.
    var startedAt: Int64 { surroundings.startedAt }
    /// Nanoseconds of the monotonic clock.
    let startedAtTick = MonotonicClock.nanoseconds
    private let state: QueueBound<State>

    init(
        _ configuration: GatewayConfiguration,
        file: String,
        surroundings: GatewaySurroundings,
        loops: [LoopUnit],
        log: Logger
    ) {
        queue = DispatchQueue(label: "portcullis.control")
        state = QueueBound(State(log: log, configuration: configuration), on: queue)
        self.file = file
        self.surroundings = surroundings
        self.loops = loops
    }

    var log: Logger {
        get { state.value.log }
        set { state.value.log = newValue }
    }

    /// The configuration in use, with the orders of operators.
    var configuration: GatewayConfiguration {
        get { state.value.configuration }
        set { state.value.configuration = newValue }
    }

    var ending: Ending {
        get { state.value.ending }
        set { state.value.ending = newValue }
    }

    /// During an upgrade, orders and drains are refused: the successor may have read them already.
    var upgrading: Upgrading {
        get { state.value.upgrading }
        set { state.value.upgrading = newValue }
    }

    /// Whether operators have drained the gateway of a fleet: it is not ready, and serves on.
    var isDrained: Bool {
        get { state.value.isDrained }
        set { state.value.isDrained = newValue }
    }

    /// Whether the end has begun: the gateway is not ready, and makes no reload.
    var isEnding: Bool { ending.hasBegun }

    /// Whether no further clients are accepted.
    var isDraining: Bool { ending.isDraining }

    /// The wall clock of the event loops, seconds since 1970.
    var wallSeconds: Int64 { surroundings.wallClock() / 1_000 }

    static var monotonicSeconds: Int64 { MonotonicClock.seconds }

    func perform(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }

    func perform(after time: DispatchTimeInterval, _ body: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: .now() + time, execute: body)
    }

    /// Asks every event loop. On the control queue, `each` is called with each answer as it comes,
    /// and `completion` with all answers after the last one.
    func gather<Fact: Sendable>(
        _ ask: (LoopUnit) -> (@escaping @Sendable (Fact) -> Void) -> Void,
        each: @escaping @Sendable (Fact) -> Void = { _ in },
        _ completion: @escaping @Sendable ([Fact]) -> Void
    ) {
        let gathered = QueueBound<[Fact]>([], on: queue)
        let count = loops.count
        for loop in loops {
            let answer: @Sendable (Fact) -> Void = { [self] fact in
                perform {
                    each(fact)
                    gathered.value.append(fact)
                    if gathered.value.count == count { completion(gathered.value) }
                }
            }
            ask(loop)(answer)
        }
    }

    static func warn(_ problems: [ConfigurationReading.Problem], _ log: Logger) {
        for problem in problems { log.warning("\(problem.text)") }
    }
}
