import RequestBinding

/// What a rule tells its clients to sign. Written once, with the rule.
///
/// A value is a list of words separated by spaces: tokens, which a quoted string (RFC 9110 §5.6.4)
/// and a string of structured fields (RFC 8941 §3.3.3) hold without escapes. The width of the
/// counter's window is a number: an integer in structured fields. Without a width, the counter is
/// strict and a client has to send one request at a time. `device="token"` asks for a new device
/// token with each request, and `integrity="token"` one of Google Play's from an Android phone.
/// `tokens` names the proofs of the section `proofs` that the rule takes.
package struct ClientNotice: Sendable {
    /// The parameters of a 401's challenge:
    /// `sign="method target", headers="idempotency-key", counter="64"`.
    package let challengeParameters: String
    /// `App-Attest-Next` for a client that has to enrol a key, without its id: an item with
    /// parameters
    /// (RFC 8941 §3.3), as `enrol;sign="method target";headers="idempotency-key";counter=64`.
    package let enrol: String
    /// `App-Attest-Next` for a client that has to sign again.
    package let signAgain: String

    init(_ demands: Rule.Demands) {
        var parameters = [("sign", demands.signing.words)]
        if case .lines(_, let headers) = demands.signing, !headers.isEmpty {
            parameters.append(("headers", headers))
        }
        if demands.accept.takesSessions {
            parameters.append(("accept", demands.accept.signedNames))
        }
        // An iPhone has no token of Google Play.
        let tokens = demands.tokens.filter { $0 != demands.integrity?.proof }
        if !tokens.isEmpty { parameters.append(("tokens", tokens.map(\.name))) }
        if demands.integrity != nil { parameters.append(("integrity", ["token"])) }
        if demands.device != nil { parameters.append(("device", ["token"])) }
        let texts = parameters.map { name, words in "\(name)=\"\(words.joined(separator: " "))\"" }
        var (challenge, next) = (texts, texts)
        switch demands.counter {
        case .strict: break
        case .window(let width):
            challenge.append("counter=\"\(width)\"")
            next.append("counter=\(width)")
        }
        challengeParameters = challenge.joined(separator: ", ")
        enrol = (["enrol"] + next).joined(separator: ";")
        signAgain = (["sign-again"] + next).joined(separator: ";")
    }
}

extension SigningForm {
    /// The signed parts, without fields, in the words of a rule's `sign`. The form that signs the
    /// challenge alone has a word of its own, since the line form may sign nothing but the
    /// challenge too.
    var words: [String] {
        switch self {
        case .content: ["content"]
        case .challenge: ["challenge-text"]
        case .lines(let parts, _): parts.names
        }
    }
}
