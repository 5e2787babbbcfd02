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
    private let exchange: Exchange

    init(_ exchange: Exchange) { self.exchange = exchange }

    private var proxy: ProxyLoop { exchange.proxy }
    private var settings: ProxySettings { exchange.settings }
    private var loop: EventLoop { exchange.proxy.loop }

    /// Counts the request and writes its line.
    func requestEnded() {
        count()
        remember()
        writeLine(
            requestBytes: exchange.client?.contentCount ?? 0,
            responseBytes: exchange.record.responseBytes
        )
    }

    func count() {
        verdictIsFinal()
        let nanoseconds = MonotonicClock.nanoseconds &- exchange.record.startedAt
        countForReports(nanoseconds: nanoseconds)
        let name = exchange.record.trace ?? exchange.record.id
        let exemplar = Exemplar(
            exchange.record.trace == nil ? .requestID : .traceID,
            name.bytes,
            count: name.count,
            value: nanoseconds,
            at: loop.wallMilliseconds
        )
        let rule = exchange.call == nil ? ruleNumber : nil
        proxy.tally.addRequest(exemplar, rule: rule, status: exchange.record.status)
        if case .cutShort(let told) = exchange.flow.delivery, let number = ruleNumber {
            proxy.tally.addCutShort(rule: number, isPassed: told == .pass)
        }
    }

    /// The current number of its rule for counting; `nil` where a reload has removed the rule.
    var ruleNumber: Int? {
        // Usually there was no reload, so the numbers have not changed.
        guard settings !== proxy.settings else { return exchange.flow.rule.index }
        return proxy.settings.rules.rules.first { $0.id == exchange.flow.rule.id }?.index
    }

    /// Writes the line of the log. A tunnel has its line when it ends, with the number of bytes
    /// that passed.
    ///
    /// - certificate: that of a tunnel's client, which the request has released.
    func writeLine(
        requestBytes: UInt64,
        responseBytes: UInt64,
        certificate: ClientCertificate? = nil
    ) {
        guard settings.options.logsAccess else { return }
        let rule = settings.options.logRule
        let isSampled = !rule.isWhole && isFine
        guard !isSampled || proxy.log.sampler.takes(rule.sample) else { return }
        guard let leftOut = linesLeftOut(rule) else { return proxy.tally.add(.refusalLinesLeftOut) }
        switch rule.form {
        case .json:
            let line = Line(
                requestBytes: requestBytes,
                responseBytes: responseBytes,
                certificate: certificate ?? exchange.client?.peer.certificate,
                isSampled: isSampled,
                leftOut: leftOut
            )
            write(line, into: &proxy.log)
        case .combined:
            proxy.log.write(
                CombinedLine(
                    client: exchange.account.address.text,
                    at: loop.wallMilliseconds,
                    spoken: exchange.record.spoken,
                    method: exchange.record.asked.method,
                    path: exchange.record.asked.path,
                    status: exchange.record.status,
                    bytes: responseBytes,
                    referer: exchange.record.asked.referer,
                    agent: exchange.record.asked.agent
                )
            )
        }
    }

    /// Whether the request has no refusal, enforced or not, and no failure.
    private var isFine: Bool {
        guard exchange.record.problem.isEmpty, exchange.record.status < 500 else { return false }
        if case .cutShort = exchange.flow.delivery { return false }
        return exchange.flow.verdictState.given.map { $0.verdict.outcome == .pass } ?? true
    }

    /// The number of refusals of the address that had no line before this one; `nil` when this one
    /// has none either.
    private func linesLeftOut(_ rule: AccessLogRule) -> UInt64? {
        guard let rate = rule.refusals, isRefusal else { return 0 }
        let hash = proxy.addresses.hash(of: exchange.account.address)
        return proxy.log.refusals.next(hash, rate, now: MonotonicClock.nanoseconds)
    }

    /// Whether the request was refused or would be, or came to no origin for a reason that its
    /// client alone can cause, whatever the status.
    private var isRefusal: Bool {
        if exchange.record.outcome?.isClients == true { return true }
        let status = exchange.record.status
        guard status < 500 else { return false }
        if case .refuse? = exchange.flow.verdictState.given?.verdict.outcome { return true }
        // Without a status the client has gone before it was answered.
        return (status >= 400 || status == 0) && exchange.side.servedBy == nil
    }

    /// What a line says beside the request's record.
    private struct Line {
        let requestBytes: UInt64
        let responseBytes: UInt64
        let certificate: ClientCertificate?
        let isSampled: Bool
        /// Lines about refusals of the address that were omitted before this one.
        let leftOut: UInt64
    }

    private func write(_ line: Line, into log: inout AccessLog) {
        let duration = MonotonicClock.nanoseconds &- exchange.record.startedAt
        log.begin()
        log.time(loop.wallMilliseconds, as: settings.options.logRule.time)
        log.member("request_id", exchange.record.id)
        if let trace = exchange.record.trace { log.member("trace_id", trace) }
        log.member("client", exchange.account.address.text)
        if let certificate = line.certificate {
            log.member("client_certificate", certificate.logName)
        }
        log.member("protocol", exchange.record.spoken.rawValue)
        log.member("method", bytes: exchange.record.asked.method)
        log.member("host", bytes: exchange.record.asked.host)
        log.member("path", bytes: exchange.record.asked.path)
        log.member("status", exchange.record.status)
        if let service = exchange.call?.name {
            log.member("endpoint", service)
        } else {
            log.member("rule", exchange.flow.rule.id)
            log.member("mode", exchange.flow.rule.mode.rawValue)
        }
        if case .decision(let form, _) = exchange.flow.purpose {
            log.member("decides", form.rawValue)
        }
        writeVerdict(into: &log)
        if let note = exchange.record.integrity ?? integrity {
            log.member("integrity", note.text)
        }
        if exchange.record.deviceUpdate != .none {
            log.member("device_update", exchange.record.deviceUpdate.rawValue)
        }
        if case .cutShort = exchange.flow.delivery {
            log.member("content", "cut-short")
        }
        if !exchange.record.problem.isEmpty {
            log.member("problem", exchange.record.problem)
        }
        log.member("duration_us", duration / 1000)
        log.member("request_bytes", line.requestBytes)
        log.member("response_bytes", line.responseBytes)
        if let servedBy = exchange.side.servedBy {
            log.member("origin", servedBy.server.settings.name)
            log.member("reused", servedBy.isReused)
        } else if let last = exchange.side.lastTried {
            log.member("origin", last.settings.name)
        }
        if exchange.side.queued > 0 {
            log.member("queued_us", exchange.side.queued / 1000)
        }
        if let reason = exchange.side.tlsFailure {
            log.member("origin_tls", reason.rawValue)
        }
        if line.leftOut > 0 { log.member("left_out", line.leftOut) }
        if line.isSampled { log.member("sample_ppm", settings.options.logRule.sample.millionths) }
        log.end()
    }

    private func writeVerdict(into log: inout AccessLog) {
        guard let (verdict, enforcement) = exchange.flow.verdictState.given else { return }
        log.member("verdict", verdict.outcome.word)
        let reason = verdict.outcome.reason
        if !reason.isEmpty { log.member("reason", reason) }
        if verdict.outcome == .refuse(.challengeUnknown), let note = verdict.challengeNote {
            log.member("challenge", note.rawValue)
        }
        let isEnforced = enforcement == .enforced
        log.member("enforced", isEnforced)
        if let risk = verdict.risk {
            if let metric = risk.metric { log.member("risk", metric) }
            if let mark = risk.mark { log.member("mark", mark.rawValue) }
        }
        if let taken = verdict.takenProofs { log.member("proof", taken) }
        if let instead = verdict.tokens.instead {
            log.member("instead_of", instead.rawValue)
        }
        if let absence = verdict.sessionAbsence {
            log.member("session", absence.rawValue)
        }
        if let bits = verdict.deviceBits { log.member("device_bits", bits.text) }
        if let keyID = verdict.keyID { log.member("key", keyID.logName) }
        if !verdict.appID.isEmpty, let environment = verdict.environment {
            log.member("app", verdict.appID)
            log.member("environment", environment.rawValue)
            if let platform = verdict.platform {
                log.member("platform", platform.rawValue)
            }
        }
        if let version = verdict.appVersion ?? exchange.record.claimedVersion {
            log.member("app_version", version.text)
            let source = verdict.appVersion == nil ? "claimed" : "signed"
            log.member("app_version_source", source)
        }
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
        let finding = exchange.flow.verdictState.given.map { verdict, enforcement in
            RefusalNote.Finding(verdict, isEnforced: enforcement == .enforced)
        }
        proxy.seen.refusals.add(
            RefusalNote(
                at: loop.wallMilliseconds,
                id: exchange.record.id,
                trace: exchange.record.trace,
                client: exchange.account.address,
                asked: .init(method: asked.method, host: asked.host, path: asked.path),
                outcome: outcome,
                fate: fate,
                status: exchange.record.status,
                place: exchange.call.map { .endpoint($0.name) }
                    ?? .rule(exchange.flow.rule.id, exchange.flow.rule.mode),
                finding: finding
            )
        )
    }
}

// The counts of a request for reports.
extension Audit {
    /// Counts the request with the verdict that it has at its end: content may have changed it.
    func countForReports(nanoseconds: UInt64) {
        guard exchange.call == nil else { return }
        proxy.seen.reports.add(reported, nanoseconds: nanoseconds, of: exchange.flow.rule)
    }

    private var reported: ReportedRequest? {
        // The mode is checked first: a verdict is large to copy.
        if case .off = exchange.flow.rule.mode { return nil }
        return exchange.flow.reported(
            address: exchange.account.address,
            claimed: exchange.record.claimedVersion
        )
    }
}

extension Flow {
    /// What a report counts of the request; `nil` where it has no verdict.
    fileprivate func reported(address: IPAddress, claimed: AppVersion?) -> ReportedRequest? {
        guard let (verdict, enforcement) = verdictState.given else { return nil }
        let fate: ReportedRequest.Fate =
            switch Decision(enforcing: rule, verdict) {
            case .forward: .forwarded
            case .refuse:
                .refused(Enforcement.bucket(rule, signer: verdict.signer, address: address))
            }
        let isRefused = if case .refused = fate { enforcement == .enforced } else { false }
        return ReportedRequest(
            verdict,
            claimed: claimed,
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
        guard exchange.flow.verdictState.counts(),
            let (verdict, enforcement) = exchange.flow.verdictState.given
        else { return }
        // A device that repeats an old assertion has another reason.
        if verdict.outcome == .refuse(.challengeUnknown), verdict.challengeNote != nil {
            proxy.tally.add(.challengesForeign)
        }
        switch exchange.flow.rule.goal {
        case .origin: break
        case .session: return proxy.tally.add(.sessionsRefused)
        }
        if verdict.risk?.mark != nil, verdict.outcome == .pass { proxy.tally.add(.riskMarks) }
        if let note = verdict.tokens.integrity, !note.isMet, verdict.refusal == nil {
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

    /// What was found of the integrity token of a request that was judged.
    private var integrity: IntegrityNote? {
        exchange.flow.verdictState.given?.verdict.tokens.integrity
    }

    /// Notes what was found of the integrity token of an enrolment.
    func note(_ note: IntegrityNote, passes: Bool) {
        exchange.record.integrity = note
        if passes, !note.isMet { proxy.tally.add(.integrityMarks) }
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
