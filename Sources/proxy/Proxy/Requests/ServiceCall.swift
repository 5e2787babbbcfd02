import AppAttest
import EventLoops
import HTTPWire
import Rules
import Services
import Telemetry
import Verification

/// A request that the gateway answers itself, from the choice of the service to the answer.
///
/// A reference, so that other requests carry one word.
final class ServiceCall {
    /// The name in the log; also for a path that no service has.
    let name: String
    /// `nil` where the answer is known at once.
    private let entry: ServiceEntry?
    /// The content so far.
    @exclusivity(unchecked) private var content: [UInt8] = []
    /// The metrics that it asks for.
    private let format: Exposition.Format
    /// The gateway of a fleet that it asks about; `nil` for all.
    private let gateway: String?
    private let tokens: [TokenProof: ShownTokens.Showing]
    /// `nil` while the service works.
    private var answer: LocalResponse?

    /// - head: of the request, whose tokens are kept.
    init(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        of entry: ServiceEntry,
        as format: Exposition.Format
    ) {
        name = entry.name
        self.entry = entry
        self.format = format
        var tokens: [TokenProof: ShownTokens.Showing] = [:]
        for proof in entry.terms.tokens {
            tokens[proof] = ShownTokens.showing(proof.place, in: head, bytes)
        }
        self.tokens = tokens
        gateway = entry.gateway(in: head.query, bytes)
    }

    /// A path or method of the gateway's own that no service answers.
    init(named name: String, _ answer: LocalResponse) {
        self.name = name
        entry = nil
        format = .prometheus
        gateway = nil
        tokens = [:]
        self.answer = answer
    }

    /// Adds a piece of content.
    func collect(_ piece: Span<UInt8>) {
        // The pointer lives for the call, and the copy is made inside it.
        piece.withUnsafeBufferPointer { content.append(contentsOf: $0) }
    }

    /// The answer, once it is there.
    var response: LocalResponse {
        guard let answer else { preconditionFailure("ServiceCall: there is no answer yet") }
        return answer
    }

    func ask(for exchange: ExchangeState) -> Flow.Action {
        guard let entry else { preconditionFailure("ServiceCall: no service is asked") }
        exchange.client?.stopDeadline()
        let now = MonotonicClock.nanoseconds
        var request = ServiceRequest(
            content: content,
            grant: exchange.flow.verdictState.given?.verdict.grant,
            now: UnixTime(seconds: exchange.proxy.wallSeconds),
            tick: now,
            address: exchange.account.address
        )
        content = []
        request.entry = exchange.account.entry
        // The caller as an audit log names it.
        if entry.terms.tellsCaller {
            request.caller =
                exchange.client?.peerUser.map { "uid \($0)" } ?? exchange.account.address.text
        }
        request.format = format
        request.gateway = gateway
        (request.tokens, request.tokenChecks) = (tokens, exchange.settings.options.tokenChecks)
        switch entry.terms.cost {
        case .nothing, .call: break
        case .verification: request.verificationWait = exchange.verificationWait(now: now)
        }
        switch entry.service.answer(request) {
        case .now(let result): return answered(result, to: exchange)
        case .later(let pending): wait(for: pending, exchange)
        case .afterCommit(let pending):
            exchange.proxy.commits.waitToStore(exchange)
            wait(for: pending, exchange)
        }
        return .none
    }

    private func wait(for pending: PendingAnswer, _ exchange: ExchangeState) {
        let loop = exchange.loop
        let waiting = LoopBound((self, exchange), on: loop)
        pending { result in
            loop.perform {
                let (call, exchange) = waiting.value
                exchange.perform(call.answered(result, to: exchange))
                exchange.proxy.commits.letGoOfStored()
            }
        }
    }

    /// Takes the answer. The request may have ended meanwhile. The service's work is counted
    /// nevertheless.
    private func answered(_ result: ServiceResult, to exchange: ExchangeState) -> Flow.Action {
        // One more token for each challenge.
        if result.callsOwed > 0, let rate = exchange.settings.addressCalls {
            let now = exchange.record.startedAt
            exchange.account.entry?.oweCalls(result.callsOwed, rate, now: now)
        }
        if result.verifiedInVain { exchange.addFailure(now: MonotonicClock.nanoseconds) }
        if let note = result.integrity {
            exchange.record.integrity = note
            if result.passes, !note.isMet { exchange.proxy.tally.add(.integrityMarks) }
        }
        if let counter = result.counter { exchange.proxy.tally.add(counter, result.countedTimes) }
        if !exchange.flow.isOver {
            if case .notEnrolled(.addressThrottled) = result.response.outcome {
                exchange.pauseAddress()
            }
            answer = result.response
        }
        return exchange.flow.served()
    }
}
