import Foundation
import KeyStore
import Logging
import OutboundCalls
import Synchronization
import Tokens

@testable import Parties

/// A transport whose calls a test answers.
final class ScriptedTransport: HTTPSSending {
    private typealias Done = @Sendable (Result<HTTPSAnswer, HTTPSFault>) -> Void

    private struct State {
        var requests: [HTTPSRequest] = []
        var waiting: [Done] = []
    }

    private let state = Mutex(State())

    var requests: [HTTPSRequest] { state.withLock(\.requests) }

    func send(
        _ request: HTTPSRequest,
        _ done: @escaping @Sendable (Result<HTTPSAnswer, HTTPSFault>) -> Void
    ) {
        state.withLock { state in
            state.requests.append(request)
            state.waiting.append(done)
        }
    }

    /// Answers the first call that waits.
    func answer(_ status: Int, _ text: String, _ fields: [String: String] = [:]) {
        let done = state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
        let answer = HTTPSAnswer(
            status: status,
            retryAfter: nil,
            content: Array(text.utf8),
            fields: fields
        )
        done?(.success(answer))
    }
}

extension PartyContext {
    /// A context with keys in memory, a clock that stands, and no log.
    ///
    /// - seconds: since 1970.
    init(_ transport: any HTTPSSending, at seconds: Int64, copies: String?) throws {
        self.init(
            transport: transport,
            decider: Decider(
                keys: try KeyTable(journal: MemoryJournal()),
                challenges: ChallengeIssuer(),
                sessions: SessionTable()
            ),
            log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            wallClock: { seconds * 1_000 },
            store: PartyStore(copies: copies, archive: { () throws(StoreProblem) in nil })
        )
    }
}
