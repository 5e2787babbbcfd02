package import Foundation
package import PortcullisClient
import Synchronization

/// A service that fails, waits and forgets as a script says, and counts what it is asked for. What
/// the script lets through, another service does.
package final class ScriptedAttestationService: AttestationService {
    /// The three calls.
    package enum Call: String, Hashable, Sendable, CaseIterable {
        case generateKey, attestKey, generateAssertion
    }

    /// What becomes of one call.
    package enum Step: Sendable {
        /// It is done.
        case work
        /// It fails, and nothing is done.
        case fail(AttestationServiceError)
        /// It is done, but the caller gets an error: an answer of Apple's that was lost.
        case workButFail(AttestationServiceError)
        /// It waits for a latch, then is done.
        case wait(Latch)
        /// It runs this first; then it is done.
        case run(@Sendable () -> Void)
        /// It is done, then this is run; the caller has no answer yet.
        case runAfter(@Sendable () -> Void)
    }

    /// What was asked of the service.
    package struct Counts: Hashable, Sendable {
        /// Calls of `generateKey` that made a key.
        package var keysMade = 0
        /// Calls of `attestKey`, whatever became of them.
        package var attestationsRequested = 0
        /// Calls of `generateAssertion`, whatever became of them.
        package var assertionsRequested = 0
    }

    private struct State {
        var isSupported = true
        var steps: [Call: [Step]] = [:]
        var lasting: [Call: Step] = [:]
        var counts = Counts()
        var attested: [Attested] = []
        var lost: Set<String> = []
    }

    /// What `attestKey` was called with.
    package struct Attested: Hashable, Sendable {
        package let keyID: String
        package let clientDataHash: Data
    }

    private let service: any AttestationService
    private let state = Mutex(State())

    package init(_ service: any AttestationService) { self.service = service }

    package var isSupported: Bool {
        get { state.withLock(\.isSupported) }
        set { state.withLock { $0.isSupported = newValue } }
    }

    /// What was asked so far.
    package var counts: Counts { state.withLock(\.counts) }

    /// The calls of `attestKey`, in order.
    package var attested: [Attested] { state.withLock(\.attested) }

    /// Sets what becomes of the next calls; later ones are done.
    package func next(_ call: Call, _ steps: Step...) {
        state.withLock { $0.steps[call] = steps }
    }

    /// Sets what becomes of all calls for which no step is left.
    package func always(_ call: Call, _ step: Step) { state.withLock { $0.lasting[call] = step } }

    /// The device forgets all keys that were made, as when a backup is restored on another one.
    package func loseKeys() {
        state.withLock { $0.lost.formUnion($0.attested.map(\.keyID)) }
    }

    // MARK: The calls

    package func generateKey() async throws(AttestationServiceError) -> String {
        let service = service
        let keyID = try await perform(.generateKey) { () async throws(AttestationServiceError) in
            try await service.generateKey()
        }
        return keyID
    }

    package func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        state.withLock { state in
            state.counts.attestationsRequested += 1
            state.attested.append(Attested(keyID: keyID, clientDataHash: clientDataHash))
        }
        try checkKnown(keyID)
        let service = service
        return try await perform(.attestKey) { () async throws(AttestationServiceError) in
            try await service.attestKey(keyID, clientDataHash: clientDataHash)
        }
    }

    package func generateAssertion(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        state.withLock { $0.counts.assertionsRequested += 1 }
        try checkKnown(keyID)
        let service = service
        return try await perform(.generateAssertion) { () async throws(AttestationServiceError) in
            try await service.generateAssertion(keyID, clientDataHash: clientDataHash)
        }
    }

    private func checkKnown(_ keyID: String) throws(AttestationServiceError) {
        if state.withLock({ $0.lost.contains(keyID) }) { throw .invalidKey }
    }

    private func perform<Result>(
        _ call: Call,
        _ work: () async throws(AttestationServiceError) -> Result
    ) async throws(AttestationServiceError) -> Result {
        let step = state.withLock { state -> Step in
            guard var steps = state.steps[call], !steps.isEmpty else {
                return state.lasting[call] ?? .work
            }
            let step = steps.removeFirst()
            state.steps[call] = steps
            return step
        }
        switch step {
        case .work: break
        case .fail(let error): throw error
        case .workButFail(let error):
            _ = try await done(call, work)
            throw error
        case .wait(let latch): await latch.pass()
        case .run(let body): body()
        case .runAfter(let body):
            let result = try await done(call, work)
            body()
            return result
        }
        return try await done(call, work)
    }

    private func done<Result>(
        _ call: Call,
        _ work: () async throws(AttestationServiceError) -> Result
    ) async throws(AttestationServiceError) -> Result {
        let result = try await work()
        if call == .generateKey { state.withLock { $0.counts.keysMade += 1 } }
        return result
    }
}
