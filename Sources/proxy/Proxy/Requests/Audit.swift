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
        guard !isSampled || proxy.lines.sampler.takes(rule.sample) else { return }
        guard let leftOut = linesLeftOut(rule) else { return proxy.tally.add(.refusalLinesLeftOut) }
        switch rule.form {
        case .json:
            let shown = certificate ?? exchange.client?.peer.certificate
            writeJSON(requestBytes, responseBytes, shown, isSampled: isSampled, leftOut)
        case .combined:
            proxy.lines.log.write(
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
        return proxy.lines.refusals.next(hash, rate, now: MonotonicClock.nanoseconds)
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

    private func writeJSON(
        _ requestBytes: UInt64,
        _ responseBytes: UInt64,
        _ certificate: ClientCertificate?,
        isSampled: Bool,
        _ leftOut: UInt64
    ) {
        let duration = MonotonicClock.nanoseconds &- exchange.record.startedAt
        proxy.lines.log.begin()
        proxy.lines.log.time(loop.wallMilliseconds, as: settings.options.logRule.time)
        proxy.lines.log.member("request_id", exchange.record.id)
        if let trace = exchange.record.trace { proxy.lines.log.member("trace_id", trace) }
        proxy.lines.log.member("client", exchange.account.address.text)
        if let certificate { proxy.lines.log.member("client_certificate", certificate.logName) }
        proxy.lines.log.member("protocol", exchange.record.spoken.rawValue)
        proxy.lines.log.member("method", bytes: exchange.record.asked.method)
        proxy.lines.log.member("host", bytes: exchange.record.asked.host)
        proxy.lines.log.member("path", bytes: exchange.record.asked.path)
        proxy.lines.log.member("status", exchange.record.status)
        if let service = exchange.call?.name {
            proxy.lines.log.member("endpoint", service)
        } else {
            proxy.lines.log.member("rule", exchange.flow.rule.id)
            proxy.lines.log.member("mode", exchange.flow.rule.mode.rawValue)
        }
        if case .decision(let form, _) = exchange.flow.purpose {
            proxy.lines.log.member("decides", form.rawValue)
        }
        recordVerdict()
        if let note = exchange.record.integrity ?? integrity {
            proxy.lines.log.member("integrity", note.text)
        }
        if exchange.record.deviceUpdate != .none {
            proxy.lines.log.member("device_update", exchange.record.deviceUpdate.rawValue)
        }
        if case .cutShort = exchange.flow.delivery {
            proxy.lines.log.member("content", "cut-short")
        }
        if !exchange.record.problem.isEmpty {
            proxy.lines.log.member("problem", exchange.record.problem)
        }
        proxy.lines.log.member("duration_us", duration / 1000)
        proxy.lines.log.member("request_bytes", requestBytes)
        proxy.lines.log.member("response_bytes", responseBytes)
        if let servedBy = exchange.side.servedBy {
            proxy.lines.log.member("origin", servedBy.server.settings.name)
            proxy.lines.log.member("reused", servedBy.isReused)
        } else if let last = exchange.side.lastTried {
            proxy.lines.log.member("origin", last.settings.name)
        }
        if exchange.side.queued > 0 {
            proxy.lines.log.member("queued_us", exchange.side.queued / 1000)
        }
        if let reason = exchange.side.tlsFailure {
            proxy.lines.log.member("origin_tls", reason.rawValue)
        }
        if leftOut > 0 { proxy.lines.log.member("left_out", leftOut) }
        if isSampled { proxy.lines.log.member("sample_ppm", settings.options.logRule.sample.millionths) }
        proxy.lines.log.end()
    }

    private func recordVerdict() {
        guard let (verdict, enforcement) = exchange.flow.verdictState.given else { return }
        proxy.lines.log.member("verdict", verdict.outcome.word)
        let reason = verdict.outcome.reason
        if !reason.isEmpty { proxy.lines.log.member("reason", reason) }
        if verdict.outcome == .refuse(.challengeUnknown), let note = verdict.challengeNote {
            proxy.lines.log.member("challenge", note.rawValue)
        }
        let isEnforced = enforcement == .enforced
        proxy.lines.log.member("enforced", isEnforced)
        if let risk = verdict.risk {
            if let metric = risk.metric { proxy.lines.log.member("risk", metric) }
            if let mark = risk.mark { proxy.lines.log.member("mark", mark.rawValue) }
        }
        if let taken = verdict.takenProofs { proxy.lines.log.member("proof", taken) }
        if let instead = verdict.tokens.instead {
            proxy.lines.log.member("instead_of", instead.rawValue)
        }
        if let absence = verdict.sessionAbsence {
            proxy.lines.log.member("session", absence.rawValue)
        }
        if let bits = verdict.deviceBits { proxy.lines.log.member("device_bits", bits.text) }
        if let keyID = verdict.keyID { proxy.lines.log.member("key", keyID.logName) }
        if !verdict.appID.isEmpty, let environment = verdict.environment {
            proxy.lines.log.member("app", verdict.appID)
            proxy.lines.log.member("environment", environment.rawValue)
            if let platform = verdict.platform {
                proxy.lines.log.member("platform", platform.rawValue)
            }
        }
        if let version = verdict.appVersion ?? exchange.record.claimedVersion {
            proxy.lines.log.member("app_version", version.text)
            let source = verdict.appVersion == nil ? "claimed" : "signed"
            proxy.lines.log.member("app_version_source", source)
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

/// The data about a request for the log and the metrics.
struct RequestRecord {
    /// Monotonic nanoseconds.
    let startedAt: UInt64
    let spoken: ClientProtocol
    /// The id that a trusted proxy or the gateway gave.
    var id: RequestID
    /// The trace that the request belongs to, where it is known.
    var trace: RequestID?
    /// The fields naming the request that go to the origin unchanged.
    var carried = FieldKindSet()
    /// Why the gateway has answered instead of the origin.
    var outcome: LocalOutcome?
    /// What the request asks for, as far as the log or `why` may show it.
    var asked = Asked()
    /// The line that its signed verdict names; `nil` where verdicts are not signed.
    var line: Line?
    /// The build that the client claims, where a device might not have signed it.
    var claimedVersion: AppVersion?
    /// What was found of the integrity token of an enrolment.
    var integrity: IntegrityNote?
    /// The result of the origin's App-Attest-Device-Bits.
    var deviceUpdate = DeviceUpdateNote.none
    /// 0 while nothing was answered.
    var status = 0
    /// Bytes of content in the response.
    var responseBytes: UInt64 = 0
    /// Why the request failed; empty where it did not.
    private(set) var problem = ""

    init(_ id: RequestID, startedAt: UInt64, spoken: ClientProtocol) {
        self.id = id
        self.startedAt = startedAt
        self.spoken = spoken
    }

    /// The first problem is the cause of all others.
    mutating func note(problem: String) {
        if self.problem.isEmpty { self.problem = problem }
    }

    /// The result of bits that an origin wants Apple to keep. The raw value is the log's word.
    enum DeviceUpdateNote: String {
        /// The response has no such bits.
        case none
        case asked
        /// The field can't be read, or Apple was not asked about the request's device.
        case ignored
    }

    /// The authority and the method as the client has written them, and the target as the origin
    /// gets it: in origin-form, or `*`.
    struct Line {
        let host: [UInt8]
        let method: [UInt8]
        let target: [UInt8]

        init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
            func copy(_ range: Range<Int>) -> [UInt8] {
                bytes.extracting(range).withUnsafeBufferPointer { Array($0) }
            }
            host = copy(head.authority)
            method = copy(head.methodRange)
            var target: [UInt8] = []
            HeadWriter.target(head, bytes, into: &target)
            self.target = target
        }
    }

    /// Copies of parts of a head, for use after its bytes are gone.
    struct Asked {
        var method: [UInt8] = []
        var host: [UInt8] = []
        var path: [UInt8] = []
        /// For the combined format only.
        var referer: [UInt8] = []
        var agent: [UInt8] = []

        init() {}

        init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
            func copy(_ range: Range<Int>) -> [UInt8] {
                bytes.extracting(range).withUnsafeBufferPointer { Array($0) }
            }
            method = copy(head.methodRange)
            host = copy(head.authority)
            path = copy(head.path)
        }

        /// Copies the further parts for the combined format.
        mutating func addCaller(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
            func copy(_ name: StaticString) -> [UInt8] {
                guard let value = head.fields.value(of: name, bytes) else { return [] }
                return bytes.extracting(value).withUnsafeBufferPointer { Array($0) }
            }
            referer = copy("referer")
            agent = copy("user-agent")
        }
    }
}
