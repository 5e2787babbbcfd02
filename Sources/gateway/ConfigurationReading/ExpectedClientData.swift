import Cryptography
import HTTPWire
import RequestBinding
import Rules

/// The client data that a sketched request has to sign, as far as the sketch says. A request with a
/// sequence number is signed with a session, if the rule accepts sessions.
enum ExpectedClientData {
    static func lines(_ rule: Rule, _ trial: borrowing RequestTrial) -> [String] {
        let sequence = rule.accept.takesSessions ? trial.values(sequenceName).first : nil
        let challenge = sequence ?? challenge(rule, trial)
        switch rule.signing {
        case .content: return ["<the content's bytes, without a line feed>"]
        case .challenge: return ["\(challenge ?? "-") (without a line feed)"]
        case .lines(let parts, let headers):
            var lines = RequestLines()
            let (method, target) = (Array(trial.method.utf8), Array(trial.target.utf8))
            lines.begin(sequence == nil ? parts : parts.inSession, method: method.span)
            lines.target(target.span)
            digest(trial, &lines)
            if let challenge = challenge.map({ Array($0.utf8) }) {
                lines.challenge(challenge.span)
            } else {
                lines.challenge(nil)
            }
            for name in headers {
                let bytes = Array(name.utf8)
                lines.header(bytes.span)
                for value in trial.values(bytes) {
                    let value = Array(value.utf8)
                    lines.value(value.span)
                }
                lines.endHeader()
            }
            // The last line also ends with a line feed, and nothing follows.
            return String(decoding: lines.bytes, as: UTF8.self)
                .split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                .map(String.init)
        }
    }

    private static let sequenceName = Array("app-attest-sequence".utf8)

    private static func challenge(_ rule: Rule, _ trial: borrowing RequestTrial) -> String? {
        let field = String(decoding: rule.fields.challenge, as: UTF8.self)
        if let value = trial.values(rule.fields.challenge).first { return value }
        return rule.challenge == .required ? "<the value of \(field)>" : nil
    }

    /// A request without content signs the digest of zero bytes.
    private static func digest(_ trial: borrowing RequestTrial, _ lines: inout RequestLines) {
        let declared = trial.values(Array("content-digest".utf8)).joined(separator: ", ")
        let bytes = Array(declared.utf8)
        switch (trial.head.framing, ContentDigest.read(bytes.span)) {
        case (_, .digest(let digest)): lines.digest(digest.span)
        case (.none, _), (.length(0), _): lines.digest(SHA256.digest(of: []).bytes.span)
        case (_, .malformed): describe("<Content-Digest can't be read>", &lines)
        case (_, .absent): describe("sha-256=:<base64 of SHA-256 over the content>:", &lines)
        }
    }

    private static func describe(_ words: String, _ lines: inout RequestLines) {
        let bytes = Array(words.utf8)
        lines.digest(describedAs: bytes.span)
    }
}
