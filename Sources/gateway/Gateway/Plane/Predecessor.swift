import ConfigurationReading
import Dispatch
import KeyStore
import Synchronization
import Telemetry

/// The process from which this one takes over, as the new one sees it. See `Upgrade` for the order.
package final class Predecessor: Sendable {
    /// The state that the old process hands over while it is quiesced.
    struct State: Sendable {
        let handed: HandoverState
        /// `nil` where there is no store.
        let lease: StoreLease?
    }

    /// The longest wait for the plan: the old process sends it at once.
    private static let planMilliseconds = 10_000
    /// The longest wait for all other messages. The old process gives up earlier.
    private static let patienceMilliseconds = 120_000
    /// The most bytes of all pieces of a state together.
    private static let stateMax = 1 << 30

    private let socket: HandoverSocket
    private let store: String
    package let sockets: InheritedSockets
    private let taken = Mutex<State?>(nil)
    /// Reports each second that this process lives, until it has everything.
    private let pulse: Pulse

    /// The state that was taken; `nil` before.
    var state: State? { taken.withLock { $0 } }

    static let garbled = GatewayError(
        "the process before has handed over what this version can't read",
        hint: "Restart the service instead; sessions and challenges of clients end with that."
    )

    private static let gone = GatewayError(
        "the process before has ended, or has given the upgrade up",
        hint: "Its log says why."
    )

    /// Reads the environment; `nil` for a first start. Called before any descriptor is opened.
    ///
    /// - Throws: when the old process sends nothing readable.
    package init?(_ environment: [String: String]) throws(GatewayError) {
        guard let text = environment[SuccessorProcess.variable], let number = Int32(text) else {
            return nil
        }
        let socket = HandoverSocket(number)
        self.socket = socket
        guard
            case .message(.plan(let store, let sockets), _) = socket.receive(
                within: Self.planMilliseconds
            )
        else { throw Self.garbled }
        let count = sockets.reduce(0) { $0 + $1.count }
        var descriptors: [Int32] = []
        while descriptors.count < count {
            guard
                case .message(.sockets, let more) = socket.receive(within: Self.planMilliseconds),
                !more.isEmpty
            else { throw Self.garbled }
            descriptors += more
        }
        guard descriptors.count == count else { throw Self.garbled }
        self.store = store
        self.sockets = InheritedSockets(sockets, descriptors)
        pulse = Pulse(every: .seconds(1)) { _ = socket.send(.alive) }
    }

    /// Reports why this process can't take over. It must end then.
    package func refuse(_ error: GatewayError) { _ = socket.send(.failed("\(error)")) }

    /// - Throws: when the configuration names another store.
    func check(_ configuration: GatewayConfiguration) throws(GatewayError) {
        guard configuration.store.name == store else {
            throw GatewayError(
                "the store is \(configuration.store.name), and was \(store)",
                hint: "An upgrade can't change `store`: restart the service for it."
            )
        }
    }

    /// Reports that all is well so far, and takes the state. From then on the old process is
    /// quiesced until ``takeTurn(answering:)``.
    ///
    /// - isLent: whether the store has only one user at a time, so that the old process lends it.
    func takeState(isLent: Bool) throws(GatewayError) -> State {
        guard socket.send(.ready(version: ProgramVersion.text)) else { throw Self.gone }
        var bytes: [UInt8] = []
        var descriptors: [Int32] = []
        while true {
            switch socket.receive(within: Self.patienceMilliseconds) {
            case .message(.state(let piece, let isLast), let given):
                bytes += piece
                descriptors += given
                guard bytes.count <= Self.stateMax else { throw Self.garbled }
                guard isLast else { continue }
                guard descriptors.count == (isLent ? 2 : 0) else { throw Self.garbled }
                let lease = isLent ? StoreLease(lock: descriptors[0], calls: descriptors[1]) : nil
                guard let handed = try? HandoverState(bytes) else { throw Self.garbled }
                let state = State(handed: handed, lease: lease)
                taken.withLock { $0 = state }
                return state
            case .ended, .late: throw Self.gone
            case .message, .malformed: throw Self.garbled
            }
        }
    }

    /// Takes over the decisions. Then this process decides, and answers the old one's queries.
    ///
    /// If the old process is gone, it decides nothing either: it closes its end of the socket only
    /// after this process has ended, or with its own end.
    func takeTurn(answering service: SuccessorService) throws(GatewayError) {
        // After TAKEN only answers follow.
        pulse.end()
        guard socket.send(.taken) else { return }
        switch socket.receive(within: Self.patienceMilliseconds) {
        case .message(.go, _): break
        case .ended: return
        case .late: throw Self.gone
        case .message, .malformed: throw Self.garbled
        }
        // Not on the caller's thread, which may be the store's writer.
        let replies = DispatchQueue(label: "portcullis.predecessor.replies")
        DispatchQueue(label: "portcullis.predecessor").async { [socket] in
            while case .message(let message, _) = socket.receive(within: nil) {
                guard case .question(let number, let question) = message else { continue }
                service.answer(question) { answer in
                    replies.async { _ = socket.send(.answer(number, answer)) }
                }
            }
        }
    }
}
