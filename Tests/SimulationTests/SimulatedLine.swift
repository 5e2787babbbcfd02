import KeyStore
import Signatures
import Synchronization

/// The line on which the old process asks its successor. A process that dies cuts it.
final class SimulatedLine: Successor {
    private let store: SimulatedStore
    private let service: SuccessorService
    /// What becomes of a message, and of the successor.
    enum Fate: Sendable {
        case arrives
        /// The successor is killed before it reads the message.
        case endsBefore
        /// The successor is killed when it has acted, before its answer leaves.
        case endsAfter
    }

    private let fate: @Sendable () -> Fate
    private let waiting = Mutex<[Int: @Sendable ([UInt8]?) -> Void]>([:])
    private let asked = Atomic(0)

    /// Whether the successor is gone.
    var isCut: Bool { store.isDead }

    init(
        to next: SimulatedGateway,
        fate: @escaping @Sendable () -> Fate
    ) {
        (store, self.fate) = (next.store, fate)
        service = SuccessorService(next.decider, tokens: NoTokens())
    }

    func ask(_ question: [UInt8]) -> [UInt8]? {
        let answer = Mutex<[UInt8]?>(nil)
        ask(question) { bytes in answer.withLock { $0 = bytes } }
        return answer.withLock { $0 }
    }

    func ask(_ question: [UInt8], _ answered: @escaping @Sendable ([UInt8]?) -> Void) {
        guard !store.isDead else { return answered(nil) }
        let fate = fate()
        guard fate != .endsBefore else {
            store.kill()
            return cut(answered)
        }
        let number = asked.wrappingAdd(1, ordering: .relaxed).oldValue
        waiting.withLock { $0[number] = answered }
        let reply: @Sendable ([UInt8]) -> Void = { [self] bytes in
            let answered = waiting.withLock { $0.removeValue(forKey: number) }
            answered?(store.isDead || fate == .endsAfter ? nil : bytes)
        }
        service.answer(question, reply)
        if fate == .endsAfter {
            store.kill()
            cut()
        }
    }

    /// All that wait get no answer.
    func cut(_ last: @Sendable ([UInt8]?) -> Void = { _ in }) {
        let lost = waiting.withLock { waiting in
            defer { waiting = [:] }
            return waiting.sorted { $0.key < $1.key }.map(\.value)
        }
        for answered in lost { answered(nil) }
        last(nil)
    }
}

/// No device shows a token here.
private struct NoTokens: TokenClaiming {
    func claim(_: SHA256Digest, now _: Int64) -> TokenClaim { .full }
    func release(_: SHA256Digest) {}
}
