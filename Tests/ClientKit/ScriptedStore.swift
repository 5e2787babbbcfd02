package import Foundation
import PortcullisClient
import Synchronization

/// A store that fails, or says wrong things about what it did, as a script says.
package final class ScriptedStore: EnrolmentStore {
    /// What becomes of one call of ``replace(_:with:)``.
    package enum Step: Sendable {
        /// It is done.
        case work
        /// It fails, and nothing is kept, as on a full disk.
        case fail
        /// The record is kept, but the caller gets an error.
        case keepButFail
        /// The record is kept, but the caller is told that another process was faster.
        case keepButDeny
        /// Nothing is kept, and the caller is told that another process was faster.
        case deny
    }

    private struct State {
        var steps: [Step] = []
        var lasting = Step.work
        var replacements = 0
    }

    private let store = MemoryEnrolmentStore()
    private let state = Mutex(State())

    package init() {}

    /// How often a record was to be kept.
    package var replacements: Int { state.withLock(\.replacements) }

    /// Sets what becomes of the next calls; later ones are as ``always(_:)`` says.
    package func next(_ steps: [Step]) { state.withLock { $0.steps = steps } }

    /// Sets what becomes of all calls for which no step is left.
    package func always(_ step: Step) { state.withLock { $0.lasting = step } }

    package func read() async throws -> Data? { await store.read() }

    package func replace(_ expected: Data?, with record: Data?) async throws -> Bool {
        let step = state.withLock { state -> Step in
            state.replacements += 1
            return state.steps.isEmpty ? state.lasting : state.steps.removeFirst()
        }
        switch step {
        case .work: return await store.replace(expected, with: record)
        case .fail: throw CocoaError(.fileWriteOutOfSpace)
        case .keepButFail:
            _ = await store.replace(expected, with: record)
            throw CocoaError(.fileWriteUnknown)
        case .keepButDeny:
            _ = await store.replace(expected, with: record)
            return false
        case .deny: return false
        }
    }
}
