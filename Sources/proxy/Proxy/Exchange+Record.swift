import AppAttest
import ClientStreams
import HTTPWire
import KeyStore
import Lanes
import Origins
import RequestFlow
import Rules
import Sessions
import TLSSession
import Telemetry
import Verification

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
