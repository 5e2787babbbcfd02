import AppAttest
import EventLoops
import HTTPWire
import KeyStore
import Rules
import Services
import Telemetry
import Tokens
import Verification

/// The line of the access log about a request. A tunnel has its line when it ends, with the number
/// of bytes that passed.
struct LogLine {
    let exchange: ExchangeState
    let requestBytes: UInt64
    let responseBytes: UInt64
    /// That of a tunnel's client, which the request has released.
    var certificate: ClientCertificate?

    private var proxy: ProxyLoop { exchange.proxy }
    private var settings: ProxySettings { exchange.settings }

    private var given: JudgedVerdict? { exchange.flow.verdictState.given }

    /// Writes the line, where the request has one.
    func write() {
        guard settings.options.logsAccess else { return }
        let rule = settings.options.logRule
        let isSampled = !rule.isWhole && isFine
        guard !isSampled || proxy.log.sampler.takes(rule.sample) else { return }
        guard let leftOut = linesLeftOut(rule) else { return proxy.tally.add(.refusalLinesLeftOut) }
        switch rule.form {
        case .json:
            write(isSampled: isSampled, leftOut: leftOut, into: &proxy.log)
        case .combined, .combinedTimes:
            let isTimed = rule.form == .combinedTimes
            proxy.log.write(
                CombinedLine(
                    members: isTimed ? combinedMembers : [],
                    client: exchange.account.address.text,
                    at: exchange.loop.wallMilliseconds,
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
        return given.map { $0.verdict.outcome == .pass } ?? true
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
        if case .refuse? = given?.verdict.outcome { return true }
        // Without a status the client has gone before it was answered.
        return (status >= 400 || status == 0) && exchange.side.servedBy == nil
    }

    /// - leftOut: lines about refusals of the address that were omitted before this one.
    private func write(isSampled: Bool, leftOut: UInt64, into log: inout AccessLog) {
        let duration = MonotonicClock.nanoseconds &- exchange.record.startedAt
        log.begin()
        log.time(exchange.loop.wallMilliseconds, as: settings.options.logRule.time)
        log.member("request_id", exchange.record.id)
        if let trace = exchange.record.trace { log.member("trace_id", trace.name) }
        log.member("client", exchange.account.address.text)
        if let certificate = certificate ?? exchange.client?.peer.certificate {
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
        if let version = build.version {
            log.member("app_version", version.text)
            log.member("app_version_source", build.source.rawValue)
        }
        if let system = exchange.record.claims.system {
            log.member("os", system.name.rawValue)
            log.member("os_version", system.version)
        }
        if let note = exchange.record.integrity ?? given?.verdict.integrity {
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
        times { log.member($0, $1) }
        log.member("request_bytes", requestBytes)
        log.member("response_bytes", responseBytes)
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
        if leftOut > 0 { log.member("left_out", leftOut) }
        if isSampled { log.member("sample_ppm", settings.options.logRule.sample.millionths) }
        log.end()
    }

    /// Hands over the times that are known, in microseconds.
    private func times(_ body: (_ name: StaticString, _ microseconds: UInt64) -> Void) {
        let times = exchange.record.times
        if times.judging > 0 { body("verify_us", UInt64(times.judging)) }
        if times.waited > 0 { body("wait_us", times.waited) }
        if times.party > 0 { body("party_us", UInt64(times.party)) }
        if times.upload > 0 { body("upload_us", UInt64(times.upload)) }
        if times.origin > 0 { body("origin_us", UInt64(times.origin)) }
    }

    /// The build that a device has signed, or else the one that the client claims.
    private var build: AppBuild {
        AppBuild(
            signed: given?.verdict.appVersion,
            claimed: exchange.record.claims.version
        )
    }

    /// What a line in the combined format has after the user agent: no value has a space.
    private var combinedMembers: [String] {
        let duration = MonotonicClock.nanoseconds &- exchange.record.startedAt
        var members = ["duration_us=\(duration / 1000)"]
        times { members.append("\($0)=\($1)") }
        if let system = exchange.record.claims.system {
            members += ["os=\(system.name.rawValue)", "os_version=\(system.version)"]
        }
        if let version = build.version { members.append("app_version=\(version.text)") }
        return members
    }

    private func writeVerdict(into log: inout AccessLog) {
        guard let given else { return }
        let verdict = given.verdict
        log.member("verdict", verdict.outcome.word)
        let reason = verdict.outcome.reason
        if !reason.isEmpty { log.member("reason", reason) }
        if verdict.outcome == .refuse(.challengeUnknown), let note = verdict.challengeNote {
            log.member("challenge", note.rawValue)
        }
        let isEnforced = given.enforcement == .enforced
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
    }
}
