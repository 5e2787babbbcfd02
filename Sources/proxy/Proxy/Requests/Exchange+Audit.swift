import AppAttest
import ClientStreams
import HTTPWire
import KeyStore
import Lanes
import Origins
import Rules
import Services
import Sessions
import TLSSession
import Telemetry
import Verification

/// What is remembered of a request for the log and the metrics.
struct RequestRecord {
    /// Monotonic nanoseconds.
    let startedAt: UInt64
    let spoken: ClientProtocol
    /// Of a trusted proxy, or our own.
    var id: RequestID
    /// The trace that the request belongs to, where it is known.
    var trace: RequestID?
    /// Which of the fields that name the request go to the origin as they came.
    var carried = FieldKindSet()
    /// When a server took the request; of the last attempt.
    var sentAt: UInt64 = 0
    /// Nanoseconds for which it waited for a place at a server.
    var queued: UInt64 = 0
    var servedBy: (server: OriginServer, isReused: Bool)?
    /// When the head of a response must have come, over all tries: milliseconds of the lane's
    /// clock; 0 before the first try.
    var respondBy: UInt64 = 0
    /// The server that was tried last, where none was reached.
    var lastTried: OriginServer?
    /// Why the TLS handshake with that server failed, where it did.
    var originTLS: TLSFailure.Reason?
    /// Why the gateway has answered in place of the origin.
    var outcome: LocalOutcome?
    /// What was asked, where the log or `why` may say it.
    var asked = Asked()
    /// The service that was asked, as the log names it; also for a path that no service has.
    var service: String?
    /// The build that the client claims, where a device might not have signed it.
    var claimedVersion: AppVersion?
    /// What became of the origin's App-Attest-Device-Bits.
    var deviceUpdate = DeviceUpdateNote.none
    /// Whether its verdict was counted.
    var verdictCount = VerdictCount.none
    /// The metrics that it asks for.
    var format = Exposition.Format.prometheus
    /// 0 while nothing was answered.
    var status = 0
    /// Bytes of content in the response.
    var responseBytes: UInt64 = 0
    /// Why the request went wrong; empty where it did not.
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

    /// Whether a verdict was counted.
    enum VerdictCount {
        /// It was not, and need not be.
        case none
        /// It will be when it is final: content may change it.
        case due
        case done
    }

    /// What becomes of bits that an origin would have Apple keep. The raw value is the log's word.
    enum DeviceUpdateNote: String {
        /// It says nothing of them.
        case none
        case asked
        /// It can't be read, or Apple was not asked about the request's device.
        case ignored
    }

    /// Copies of what a head asks, for when its bytes are gone.
    struct Asked {
        var method: [UInt8] = []
        var host: [UInt8] = []
        var path: [UInt8] = []
        /// For the combined format alone.
        var referer: [UInt8] = []
        var agent: [UInt8] = []

        init() {}

        init(_ head: borrowing RequestHead, _ octets: Span<UInt8>) {
            func copy(_ range: Range<Int>) -> [UInt8] {
                octets.extracting(range).withUnsafeBufferPointer { Array($0) }
            }
            method = copy(head.methodRange)
            host = copy(head.authority)
            path = copy(head.path)
        }

        /// Copies what the combined format has besides.
        mutating func addCaller(_ head: borrowing RequestHead, _ octets: Span<UInt8>) {
            func copy(_ name: StaticString) -> [UInt8] {
                guard let value = head.fields.value(of: name, octets) else { return [] }
                return octets.extracting(value).withUnsafeBufferPointer { Array($0) }
            }
            referer = copy("referer")
            agent = copy("user-agent")
        }
    }
}

// What is remembered of a request that has ended.
extension Exchange {
    /// Counts the request and writes its line.
    func writeRecord() {
        count()
        remember()
        writeLine(
            requestBytes: client?.contentCount ?? 0,
            responseBytes: record.responseBytes
        )
    }

    /// Counts the request.
    func count() {
        verdictIsFinal()
        let nanoseconds = MonotonicClock.nanoseconds &- record.startedAt
        countForReports(nanoseconds: nanoseconds)
        let name = record.trace ?? record.id
        let exemplar = Exemplar(
            record.trace == nil ? .requestID : .traceID,
            name.bytes,
            count: name.count,
            value: nanoseconds,
            at: lane.wallMilliseconds
        )
        let rule = record.service == nil ? ruleNumber : nil
        proxy.tally.addRequest(exemplar, rule: rule, status: record.status)
        if case .cutShort(let told) = flow.delivery, let number = ruleNumber {
            let isPassed = if case .pass = told { true } else { false }
            proxy.tally.addCutShort(rule: number, isPassed: isPassed)
        }
    }

    /// The number by which its rule is counted today; `nil` where a reload has removed the rule.
    var ruleNumber: Int? {
        // As a rule there was no reload, and then numbers have not changed.
        guard settings !== proxy.settings else { return flow.rule.index }
        return proxy.settings.rules.rules.first { $0.id == flow.rule.id }?.index
    }

    /// Writes the line of the log. That of a tunnel comes when it ends, with the bytes that passed.
    func writeLine(requestBytes: UInt64, responseBytes: UInt64) {
        guard settings.logsAccess else { return }
        let rule = settings.logRule
        let isSampled = !rule.isWhole && isFine
        guard !isSampled || proxy.logSampler.takes(share: rule.admittedShare) else { return }
        guard let leftOut = linesLeftOut(rule) else {
            return proxy.tally.add(.refusalLinesLeftOut)
        }
        switch rule.form {
        case .json: writeJSON(requestBytes, responseBytes, isSampled: isSampled, leftOut)
        case .combined:
            proxy.log.write(
                CombinedLine(
                    client: account.address.text,
                    at: lane.wallMilliseconds,
                    spoken: record.spoken,
                    method: record.asked.method,
                    path: record.asked.path,
                    status: record.status,
                    bytes: responseBytes,
                    referer: record.asked.referer,
                    agent: record.asked.agent
                )
            )
        }
    }

    /// Whether nothing speaks against the request, enforced or not, and nothing went wrong.
    private var isFine: Bool {
        guard record.problem.isEmpty, record.status < 500 else { return false }
        if case .cutShort = flow.delivery { return false }
        return flow.judgement.verdict.map { $0.ruling.verdict == .pass } ?? true
    }

    /// How many refusals of the address had no line before this one; `nil` when this one has none
    /// either.
    private func linesLeftOut(_ rule: AccessLogRule) -> UInt64? {
        guard let rate = rule.refusals, isRefusal else { return 0 }
        let hash = proxy.addresses.hash(of: account.address)
        return proxy.refusalLines.next(hash, rate, now: MonotonicClock.nanoseconds)
    }

    /// Whether the request was refused or would be, or was answered as the client's fault without
    /// an origin.
    private var isRefusal: Bool {
        guard record.status < 500 else { return false }
        if case .refuse? = flow.judgement.verdict?.ruling.verdict { return true }
        return record.status >= 400 && record.servedBy == nil
    }

    private func writeJSON(
        _ requestBytes: UInt64,
        _ responseBytes: UInt64,
        isSampled: Bool,
        _ leftOut: UInt64
    ) {
        let duration = MonotonicClock.nanoseconds &- record.startedAt
        proxy.log.begin()
        proxy.log.time(lane.wallMilliseconds, as: settings.logRule.time)
        proxy.log.member("request_id", record.id)
        if let trace = record.trace { proxy.log.member("trace_id", trace) }
        proxy.log.member("client", account.address.text)
        if let certificate = client?.certificate {
            proxy.log.member("client_certificate", certificate.logName)
        }
        proxy.log.member("protocol", record.spoken.rawValue)
        proxy.log.member("method", octets: record.asked.method)
        proxy.log.member("host", octets: record.asked.host)
        proxy.log.member("path", octets: record.asked.path)
        proxy.log.member("status", record.status)
        if let service = record.service {
            proxy.log.member("endpoint", service)
        } else {
            proxy.log.member("rule", flow.rule.id)
            proxy.log.member("mode", flow.rule.mode.rawValue)
        }
        if case .asked(let form) = question { proxy.log.member("decides", form.rawValue) }
        recordVerdict()
        switch record.deviceUpdate {
        case .none: break
        case .asked, .ignored:
            proxy.log.member("device_update", record.deviceUpdate.rawValue)
        }
        if case .cutShort = flow.delivery { proxy.log.member("content", "cut-short") }
        if !record.problem.isEmpty { proxy.log.member("problem", record.problem) }
        proxy.log.member("duration_us", duration / 1000)
        proxy.log.member("request_bytes", requestBytes)
        proxy.log.member("response_bytes", responseBytes)
        if let servedBy = record.servedBy {
            proxy.log.member("origin", servedBy.server.settings.name)
            proxy.log.member("reused", servedBy.isReused)
        } else if let last = record.lastTried {
            proxy.log.member("origin", last.settings.name)
        }
        if record.queued > 0 { proxy.log.member("queued_us", record.queued / 1000) }
        if let reason = record.originTLS { proxy.log.member("origin_tls", reason.rawValue) }
        if leftOut > 0 { proxy.log.member("left_out", leftOut) }
        if isSampled { proxy.log.member("sample_ppm", settings.logRule.admittedShare) }
        proxy.log.end()
    }

    private func recordVerdict() {
        guard let (ruling, enforcement) = flow.judgement.verdict else { return }
        proxy.log.member("verdict", ruling.verdict.word)
        let reason = ruling.verdict.reason
        if !reason.isEmpty { proxy.log.member("reason", reason) }
        if ruling.verdict == .refuse(.challengeUnknown), let note = ruling.challengeNote {
            proxy.log.member("challenge", note.rawValue)
        }
        let isEnforced = if case .enforced = enforcement { true } else { false }
        proxy.log.member("enforced", isEnforced)
        if let risk = ruling.risk {
            if let metric = risk.metric { proxy.log.member("risk", metric) }
            if let mark = risk.mark { proxy.log.member("mark", mark.rawValue) }
        }
        if let proof = ruling.proof { proxy.log.member("proof", proof.rawValue) }
        if let absence = ruling.sessionAbsence { proxy.log.member("session", absence.rawValue) }
        if let bits = ruling.deviceBits { proxy.log.member("device_bits", bits.text) }
        if let keyID = ruling.keyID { proxy.log.member("key", keyID.logName) }
        if !ruling.appID.isEmpty, let environment = ruling.environment {
            proxy.log.member("app", ruling.appID)
            proxy.log.member("environment", environment.rawValue)
        }
        if let version = ruling.appVersion ?? record.claimedVersion {
            proxy.log.member("app_version", version.text)
            let source = ruling.appVersion == nil ? "claimed" : "signed"
            proxy.log.member("app_version_source", source)
        }
    }
}

// What is remembered of a refusal, for `portcullis why`.
extension Exchange {
    /// Remembers why the request was refused, or would have been where its rule enforces.
    func remember() {
        switch record.outcome {
        case .refused, .notEnrolled, .malformed:
            guard let outcome = record.outcome else { return }
            remember(outcome, record.status > 0 ? .answered : .cutOff)
        // Failures of origins and of HTTP are in the log.
        case .failed, .fault, .done: break
        case nil:
            guard flow.rule.mode != .off, let verdict = flow.judgement.verdict?.ruling.verdict
            else { return }
            switch verdict {
            case .pass, .refuse(.preflight): break
            case .refuse(let refusal): remember(.refused(refusal), .forwarded)
            case .failure(let dependency): remember(.refused(dependency.refusal), .forwarded)
            }
        }
    }

    private func remember(_ outcome: LocalOutcome, _ fate: RefusalNote.Fate) {
        let asked = record.asked
        let finding = flow.judgement.verdict.map { ruling, enforcement in
            RefusalNote.Finding(ruling, isEnforced: enforcement == .enforced)
        }
        proxy.refusals.add(
            RefusalNote(
                at: lane.wallMilliseconds,
                id: record.id,
                trace: record.trace,
                client: account.address,
                asked: .init(method: asked.method, host: asked.host, path: asked.path),
                outcome: outcome,
                fate: fate,
                status: record.status,
                place: record.service.map { .endpoint($0) } ?? .rule(flow.rule.id, flow.rule.mode),
                finding: finding
            )
        )
    }
}

// What reports count of a request.
extension Exchange {
    /// Counts the request with the verdict that it has at its end: content may have changed it.
    func countForReports(nanoseconds: UInt64) {
        guard record.service == nil else { return }
        proxy.report.add(reported, nanoseconds: nanoseconds, of: flow.rule)
    }

    private var reported: ReportedRequest? {
        // The mode first: a judgement is large to copy.
        guard flow.rule.mode != .off, let (ruling, enforcement) = flow.judgement.verdict
        else { return nil }
        let fate: ReportedRequest.Fate
        switch Decision(enforcing: flow.rule, ruling) {
        case .forward: fate = .forwarded
        case .refuse:
            let address = account.address
            fate = .refused(
                Enforcement.bucket(flow.rule, signer: ruling.signer, address: address)
            )
        }
        let isRefused =
            switch (fate, enforcement) {
            case (.refused, .enforced): true
            case (.refused, .observed), (.forwarded, _): false
            }
        return ReportedRequest(
            ruling,
            claimed: record.claimedVersion,
            address: account.address,
            fate: fate,
            isRefused: isRefused
        )
    }
}
