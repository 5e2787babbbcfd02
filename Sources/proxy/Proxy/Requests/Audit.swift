import AppAttest
import EventLoops
import HTTPWire
import KeyStore
import Rules
import Services
import Telemetry
import Tokens
import Verification

/// The one observer of a request's end: it counts the verdict and the request, for metrics, reports
/// and guards, remembers a refusal for `portcullis why`, and writes the line of the log.
struct Audit {
    let exchange: ExchangeState

    init(_ exchange: ExchangeState) { self.exchange = exchange }

    var proxy: ProxyLoop { exchange.proxy }
    var settings: ProxySettings { exchange.settings }
    var loop: EventLoop { exchange.proxy.loop }

    /// Counts the request and writes its line.
    func requestEnded() {
        guard let recording = settings.options.tracing else { return writeDown() }
        chooseRefused(recording)
        writeDown()
        tellSpans(recording)
    }

    private func writeDown() {
        count()
        remember()
        LogLine(
            exchange: exchange,
            requestBytes: exchange.client?.contentCount ?? 0,
            responseBytes: exchange.record.responseBytes
        ).write()
    }

    func count() {
        verdictIsFinal()
        let nanoseconds = MonotonicClock.nanoseconds &- exchange.record.startedAt
        countForReports(nanoseconds: nanoseconds)
        let name = exchange.record.trace?.name ?? exchange.record.id
        let exemplar = Exemplar(
            exchange.record.trace == nil ? .requestID : .traceID,
            name.bytes,
            count: name.count,
            value: nanoseconds,
            at: loop.wallMilliseconds
        )
        let rule = exchange.call == nil ? ruleNumber : nil
        proxy.tally.addRequest(exemplar, rule: rule, status: exchange.record.status)
        if let rule { countTimes(of: rule) }
        if case .cutShort(let told) = exchange.flow.delivery, let number = ruleNumber {
            proxy.tally.addCutShort(rule: number, isPassed: told == .pass)
        }
    }

    private func countTimes(of rule: Int) {
        let times = exchange.record.times
        let judging = UInt64(times.judging) * 1000
        if judging > 0 { proxy.tally.add(.judging, rule: rule, nanoseconds: judging) }
        let waited = times.waited * 1000
        if waited > 0 { proxy.tally.add(.waiting, rule: rule, nanoseconds: waited) }
        guard exchange.record.spans != nil, let name = exchange.record.trace?.name else { return }
        let origin = UInt64(times.origin) * 1000
        for (time, value) in [(RuleTime.judging, judging), (.waiting, waited), (.origin, origin)]
        where value > 0 {
            let exemplar = Exemplar(
                .traceID,
                name.bytes,
                count: name.count,
                value: value,
                at: loop.wallMilliseconds
            )
            proxy.tally.keep(exemplar, of: time, rule: rule)
        }
    }

    /// Counts how long the server took for the head of its response, its content aside.
    ///
    /// - Returns: nanoseconds.
    func originAnswered(at now: UInt64) -> UInt64 {
        let since = exchange.side.sentAt
        exchange.record.add(.origin, since: since, until: now)
        proxy.tally.addFirstByte(rule: ruleNumber, nanoseconds: now &- since)
        return now &- since
    }

    /// The current number of its rule for counting; `nil` where a reload has removed the rule.
    var ruleNumber: Int? {
        // Usually there was no reload, so the numbers have not changed.
        guard settings !== proxy.settings else { return exchange.flow.rule.index }
        return proxy.settings.rules.rules.first { $0.id == exchange.flow.rule.id }?.index
    }
}

// The data about a refusal for `portcullis why`.
extension Audit {
    /// Keeps the reason why the request was refused, or would be if its rule enforced.
    func remember() {
        switch exchange.record.outcome {
        case .refused, .notEnrolled, .malformed:
            guard let outcome = exchange.record.outcome else { return }
            remember(outcome, exchange.record.status > 0 ? .answered : .cutOff)
        // An origin or the proxy that has asked got it.
        case nil, .done(.allowed):
            guard exchange.flow.rule.mode != .off,
                let outcome = exchange.flow.verdictState.given?.verdict.outcome
            else { return }
            switch outcome {
            case .pass, .refuse(.preflight): break
            case .refuse(let refusal): remember(.refused(refusal), .forwarded)
            case .failure(let dependency): remember(.refused(dependency.refusal), .forwarded)
            }
        // The log has the failures of origins and of HTTP.
        case .failed, .fault, .done: break
        }
    }

    private func remember(_ outcome: LocalOutcome, _ fate: RefusalNote.Fate) {
        let asked = exchange.record.asked
        let finding = exchange.flow.verdictState.given.map {
            RefusalNote.Finding($0.verdict, isEnforced: $0.enforcement == .enforced)
        }
        let shown = RefusalNote.Asked(
            method: asked.method,
            host: asked.host,
            path: asked.path,
            claims: exchange.record.claims
        )
        var note = RefusalNote(
            at: loop.wallMilliseconds,
            name: (exchange.record.id, exchange.record.trace),
            asked: (exchange.account.address, shown),
            end: (outcome, fate, exchange.record.status),
            place: exchange.call.map { .endpoint($0.name) }
                ?? .rule(exchange.flow.rule.id, exchange.flow.rule.mode)
        )
        note.finding = finding
        proxy.seen.refusals.add(note)
    }
}

// The counts of a request for reports.
extension Audit {
    /// Counts the request with the verdict that it has at its end: content may have changed it.
    func countForReports(nanoseconds: UInt64) {
        guard exchange.call == nil else { return }
        func count(at rule: Rule) {
            proxy.seen.reports.add(reported(by: rule), nanoseconds: nanoseconds, of: rule)
        }
        count(at: exchange.flow.rule)
        // The forecast of an order about one of them would be wrong without it.
        for rule in exchange.record.disputants { count(at: rule) }
    }

    private func reported(by rule: Rule) -> ReportedRequest? {
        if case .off = rule.mode { return nil }
        return exchange.flow.reported(
            by: rule,
            address: exchange.account.address,
            exchange.record.claims
        )
    }
}

extension Flow {
    /// What a report counts of the request; `nil` where it has no verdict.
    fileprivate func reported(
        by rule: Rule,
        address: IPAddress,
        _ claims: ClientClaims
    ) -> ReportedRequest? {
        guard let given = verdictState.given else { return nil }
        let fate: ReportedRequest.Fate =
            switch Decision(enforcing: rule, given.verdict) {
            case .forward: .forwarded
            case .refuse:
                .refused(Enforcement.bucket(rule, signer: given.verdict.signer, address: address))
            }
        let isRefused = if case .refused = fate { given.enforcement == .enforced } else { false }
        return ReportedRequest(
            given.verdict,
            claims,
            address: address,
            fate: fate,
            isRefused: isRefused
        )
    }
}

// An answer instead of the origin's response.
extension Audit {
    /// Counts the reason for the request's end, and keeps it for the log.
    func answered(_ reply: Reply) {
        switch reply {
        case .refused(let refusal):
            countVerdict()
            refused(refusal)
        case .declined(let refusal): refused(refusal)
        case .malformed(let reason):
            proxy.tally.add(.malformedRequests)
            exchange.record.outcome = .malformed(reason)
            exchange.record.note(problem: reason.rawValue)
        // Failed connects are counted elsewhere.
        case .unreached(let failure): exchange.record.note(problem: failure.rawValue)
        case .failed(let failure):
            switch failure {
            case .originTimeout: proxy.tally.add(.originTimeouts)
            case .responseMalformed, .tooManyInterimResponses: proxy.tally.add(.originMalformed)
            case .originClosed, .originRefused: proxy.tally.add(.originFailures)
            case .originUnreachable, .originDown, .originQueueFull, .originQueueTimeout,
                .originTLSFailed, .originNotHTTP2, .outOfDescriptors:
                break
            }
            exchange.record.note(problem: failure.rawValue)
        case .contentTimeout:
            proxy.tally.add(.clientTimeouts)
            exchange.record.note(problem: LocalFault.bodyTimeout.rawValue)
        case .allowed: countVerdict()
        case .loopDetected, .lastHop, .service: break
        }
    }

    private func refused(_ refusal: Refusal) {
        if refusal == .addressThrottled { exchange.pauseAddress() }
        exchange.record.outcome = .refused(refusal)
        exchange.record.note(problem: refusal.rawValue)
    }
}

// The verdict, which is counted once for a request.
extension Audit {
    /// The verdict can't change any more: it is counted, if it was not yet.
    func verdictIsFinal() {
        if case .due = exchange.flow.verdictState.count { countVerdict() }
    }

    /// Counts the current verdict, once for each request.
    func countVerdict() {
        guard exchange.flow.verdictState.counts(), let given = exchange.flow.verdictState.given
        else { return }
        count(given.verdict, given.enforcement)
    }

    private func count(_ verdict: Verdict, _ enforcement: Enforcement) {
        // A device that repeats an old assertion has another reason.
        if verdict.outcome == .refuse(.challengeUnknown), verdict.challengeNote != nil {
            proxy.tally.add(.challengesForeign)
        }
        switch exchange.flow.rule.goal {
        case .origin: break
        case .session: return proxy.tally.add(.sessionsRefused)
        }
        if verdict.risk?.mark != nil, verdict.outcome == .pass { proxy.tally.add(.riskMarks) }
        if let note = verdict.integrity, !note.isMet, verdict.refusal == nil {
            proxy.tally.add(.integrityMarks)
        }
        if verdict.outcome == .pass {
            switch verdict.proof {
            case .session: proxy.tally.add(.sessionPasses)
            case .token: proxy.tally.add(.tokenPasses)
            case .assertion, nil: break
            }
        }
        if verdict.sessionAbsence == .foreign { proxy.tally.add(.sessionsForeign) }
        // What the rule forwards all the same is not refused.
        let isEnforced = enforcement == .enforced && !verdict.isExcused
        if !proxy.seen.guards.areNone, isGuarded(verdict, enforcement) {
            proxy.seen.guards.count(exchange.flow.rule, verdict) {
                proxy.judge.keyCheck.isInstall(verdict)
            }
        }
        guard let number = ruleNumber else { return }
        proxy.tally.addVerdict(
            rule: number,
            slot: VerdictSlot.index(
                verdict.outcome,
                isEnforced: isEnforced,
                environment: verdict.environment,
                platform: verdict.platform
            )
        )
    }

    /// Whether the rule's share includes the install that the request names.
    ///
    /// If no signature proves the key, the client's address decides about the refusal, so that an
    /// attacker can't choose a key outside the share. The guard watches the app, and all of its
    /// installs may come from few addresses, all outside the share. So the guard always counts by
    /// the key. The refusals themselves don't change. For what that allows an attacker see
    /// rules/docs/rules.md, "Guard".
    private func isGuarded(_ verdict: Verdict, _ enforcement: Enforcement) -> Bool {
        if verdict.signer == verdict.keyID { return enforcement == .enforced }
        let time = UnixTime(seconds: proxy.wallSeconds)
        let address = exchange.account.address
        return Enforcement(exchange.flow.rule, signer: verdict.keyID, address: address, at: time)
            == .enforced
    }
}
