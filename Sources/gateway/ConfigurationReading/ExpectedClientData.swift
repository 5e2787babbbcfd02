import Cryptography
import HTTPWire
import RequestBinding
import Rules

/// The client data that a sketched request has to be signed over, as far as the sketch says.
enum ExpectedClientData {
    static func lines(_ rule: Rule, _ trial: borrowing RequestTrial) -> [String] {
        let challenge = challenge(rule, trial)
        switch rule.signing {
        case .content: return ["<the content's octets, without a line feed>"]
        case .challenge: return ["\(challenge ?? "-") (without a line feed)"]
        case .lines(let parts, let headers):
            var lines = RequestLines()
            lines.begin()
            lines.add(parts.contains(.method) ? trial.method : nil)
            lines.add(parts.contains(.target) ? trial.target : nil)
            if parts.contains(.body) {
                digest(trial, &lines)
            } else {
                lines.part(nil)
            }
            lines.add(parts.contains(.challenge) ? challenge : nil)
            for name in headers {
                let octets = Array(name.utf8)
                lines.header(octets.span)
                for value in trial.values(octets) {
                    let value = Array(value.utf8)
                    lines.value(value.span)
                }
                lines.endHeader()
            }
            // The last line ends in a line feed too, behind which there is nothing.
            return String(decoding: lines.octets, as: UTF8.self)
                .split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                .map(String.init)
        }
    }

    private static func challenge(_ rule: Rule, _ trial: borrowing RequestTrial) -> String? {
        let field = String(decoding: rule.fields.challenge, as: UTF8.self)
        if let value = trial.values(rule.fields.challenge).first { return value }
        return rule.challenge == .required ? "<the value of \(field)>" : nil
    }

    /// A request without content signs the digest of zero octets.
    private static func digest(_ trial: borrowing RequestTrial, _ lines: inout RequestLines) {
        let declared = trial.values(Array("content-digest".utf8)).joined(separator: ", ")
        let octets = Array(declared.utf8)
        switch (trial.head.framing, ContentDigest.read(octets.span)) {
        case (_, .digest(let digest)): lines.digest(digest.span)
        case (.none, _), (.length(0), _): lines.digest(SHA256.digest(of: []).bytes.span)
        case (_, .malformed): lines.add("<Content-Digest can't be read>")
        case (_, .absent): lines.add("sha-256=:<base64 of SHA-256 over the content>:")
        }
    }
}

extension RequestLines {
    fileprivate mutating func add(_ text: String?) {
        guard let text = text.map({ Array($0.utf8) }) else { return part(nil) }
        part(text.span)
    }
}
