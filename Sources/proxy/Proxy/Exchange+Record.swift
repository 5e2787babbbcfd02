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
        count()
        writeLine(
            requestBytes: client?.contentCount ?? 0,
            responseBytes: responseCount + answeredBytes
        )
    }

    /// Counts the exchange.
    func count() {
        proxy.tally.add(.request, nanoseconds: MonotonicClock.nanoseconds &- startedAt)
        if status > 0 { proxy.tally.addStatus(status) }
        if isCutShort { proxy.tally.addCutShort(rule: rule.index, isPassed: toldPass) }
    }

    /// Writes the line of the log. That of a tunnel comes when it ends, with the bytes that passed.
    func writeLine(requestBytes: UInt64, responseBytes: UInt64) {
        guard settings.logsAccess else { return }
        let duration = MonotonicClock.nanoseconds &- startedAt
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
        proxy.log.member("request_bytes", requestBytes)
        proxy.log.member("response_bytes", responseBytes)
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
