import Cryptography
import RequestBinding
import Rules

/// Makes the hash that a device signs; keeps its scratch memory.
struct ContentHasher: Sendable {
    private var lines = RequestLines()
    private var content: [UInt8] = []

    /// SHA-256 of the client data of a request.
    ///
    /// - `challenge`: the text, where one is sent.
    mutating func hash(
        _ template: RequestTemplate,
        _ made: RequestTemplate.Content,
        challenge: [UInt8]?
    ) -> [UInt8] {
        if let fixed = made.fixedHash { return fixed }
        switch template.demand.signing {
        case .lines(let parts, _):
            lines.resume(behind: made.linesBefore, parts, hasDigest: true)
            if let challenge {
                template.finish(&lines, challenge: challenge.span)
            } else {
                template.finish(&lines, challenge: nil)
            }
            return SHA256.digest(of: lines.octets).octets
        case .content:
            content.removeAll(keepingCapacity: true)
            content += made.octets
            if let place = made.challengePlace, let challenge {
                content.replaceSubrange(place, with: challenge)
            }
            return SHA256.digest(content.span.extracting(made.plain)).octets
        case .challenge: return SHA256.digest(of: challenge ?? []).octets
        }
    }
}
