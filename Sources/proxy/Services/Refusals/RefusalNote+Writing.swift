import AppAttest
import Cryptography
import HTTPWire
import JSONText
import KeyStore
import Rules
import Verification

extension [RefusalNote] {
    /// The most refusals that one answer about a name tells of, the latest ones.
    private static let toldMax = 20

    private func latest(_ count: Int) -> ArraySlice<RefusalNote> {
        sorted { $0.at > $1.at }.prefix(count)
    }

    /// A block of lines for each, the latest first.
    var text: String { latest(Self.toldMax).map(\.text).joined(separator: "\n") }

    /// The latest of them as a document.
    func json(atMost count: Int = toldMax) -> [UInt8] {
        var json = JSONWriter(.compact)
        json.object { json in
            json.array("refusals") { json in
                for note in latest(count) { json.object { note.write(into: &$0) } }
            }
        }
        return json.line
    }
}

extension RefusalNote {
    private var time: String { UnixTime(seconds: at / 1000).iso8601 }

    /// For people: what happened, what was asked, what was found, what the client does next.
    fileprivate var text: String {
        let row = outcome.row
        var lines = ["\(time) \(outcome.reason): \(row.title)"]
        lines.append("  asked   \(word(asked.method)) \(word(asked.host)) \(word(asked.path))")
        lines.append("          by \(client.text), request id \(id.text)")
        if let trace { lines[2] += ", trace id \(trace.text)" }
        switch place {
        case .rule(let id, let mode): lines.append("  rule    \(id), \(mode.rawValue)")
        case .endpoint(let name): lines.append("  call    of the endpoint \(name)")
        }
        lines.append("  found   " + foundText)
        lines.append("  answer  " + answerText)
        lines.append("  client  " + row.nextStep.advice)
        return lines.joined(separator: "\n") + "\n"
    }

    private var foundText: String {
        guard let finding else { return "nothing was verified" }
        guard let keyID = finding.keyID else { return "no key is named" }
        var text = "key \(keyID.logName)"
        text += finding.environment.map { ", \(finding.appID), \($0.rawValue)" } ?? ", not known"
        switch finding.standing {
        case .claimed: text += "; it is not shown that the request comes from it"
        case .signed: text += "; it has signed the request"
        case .complete: text += "; it has signed the request, and the proof holds"
        }
        return text
    }

    private var answerText: String {
        switch fate {
        case .answered: "\(status)"
        case .cutOff: "the connection was reset"
        case .forwarded:
            "none of the gateway's: forwarded, since the rule or its rollout only observes"
        }
    }

    /// Bytes of a head that may go to a terminal.
    private func word(_ bytes: [UInt8]) -> String {
        guard !bytes.isEmpty else { return "-" }
        let shown = bytes.map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
        return String(decoding: shown, as: UTF8.self)
    }

    fileprivate func write(into json: inout JSONWriter) {
        let row = outcome.row
        json.member("time", time)
        json.member("request_id", id.text)
        if let trace { json.member("trace_id", trace.text) }
        json.member("client", client.text)
        json.member("method", word(asked.method))
        json.member("host", word(asked.host))
        json.member("path", word(asked.path))
        switch place {
        case .rule(let id, let mode):
            json.member("rule", id)
            json.member("mode", mode.rawValue)
        case .endpoint(let name): json.member("endpoint", name)
        }
        json.member("reason", outcome.reason)
        json.member("title", row.title)
        json.member("fate", fate.rawValue)
        json.member("status", status)
        if let finding {
            json.member("enforced", finding.isEnforced)
            if let proof = finding.proof { json.member("proof", proof.rawValue) }
            if let keyID = finding.keyID { json.member("key", keyID.logName) }
            json.member("signed", finding.standing >= .signed)
            if let environment = finding.environment {
                json.member("app", finding.appID)
                json.member("environment", environment.rawValue)
            }
        }
        json.member("next", row.nextStep == .unsaid ? nil : row.nextStep.rawValue)
        json.member("advice", row.nextStep.advice)
    }
}
