import AppAttest
import ClientStreams
import HTTPWire
import KeyStore
import Lanes
import Origins
import Rules
import Telemetry
import Verification

// What is remembered of a finished exchange.
extension Exchange {
    /// Counts the exchange and writes its line.
    func record() {
        let duration = MonotonicClock.nanoseconds &- startedAt
        proxy.tally.add(.request, nanoseconds: duration)
        if status > 0 { proxy.tally.addStatus(status) }
        let isCutShort = isCutShort
        if isCutShort { proxy.tally.addCutShort(rule: rule.index, isPassed: toldPass) }
        guard settings.logsAccess else { return }
        proxy.log.begin()
        proxy.log.member("time_ms", lane.wallMilliseconds)
        proxy.log.member("client", clientAddress.text)
        proxy.log.member("method", octets: logMethod)
        proxy.log.member("host", octets: logHost)
        proxy.log.member("path", octets: logPath)
        proxy.log.member("status", status)
        if let endpoint {
            proxy.log.member("endpoint", endpoint.rawValue)
        } else {
            proxy.log.member("rule", rule.id)
            proxy.log.member("mode", rule.mode.rawValue)
        }
        if isJudged { recordVerdict() }
        if isCutShort { proxy.log.member("content", "cut-short") }
        if !problem.isEmpty { proxy.log.member("problem", problem) }
        proxy.log.member("duration_us", duration / 1000)
        proxy.log.member("request_bytes", client?.contentCount ?? 0)
        proxy.log.member("response_bytes", responseCount + answeredBytes)
        if let servedBy {
            proxy.log.member("origin", servedBy.server.settings.name)
            proxy.log.member("reused", servedBy.isReused)
        } else if let last = lastTried ?? dial?.lastServer {
            proxy.log.member("origin", last.settings.name)
        }
        proxy.log.end()
    }

    private func recordVerdict() {
        proxy.log.member("verdict", ruling.verdict.word)
        let reason = ruling.verdict.reason
        if !reason.isEmpty { proxy.log.member("reason", reason) }
        proxy.log.member("enforced", isEnforced)
        if let keyID = ruling.keyID { proxy.log.member("key", keyID.logName) }
        if !ruling.appID.isEmpty, let environment = ruling.environment {
            proxy.log.member("app", ruling.appID)
            proxy.log.member("environment", environment.rawValue)
        }
    }
}
