import Encodings
import RequestBinding

/// What an app has to know of the rules to sign its requests without asking: a JSON document that
/// ships with the app. `portcullis plan` writes it.
///
/// The rules stand in their order, and the first that matches a request decides, as in the gateway.
/// Paths are matched as written. Where servers interpret a path in several ways, the gateway also
/// decides by the written path, or refuses. The plan leaves out modes, rollouts, rates and apps:
/// they are policy.
///
/// An app does not know the address that the gateway takes for its own. So a rule for some clients
/// stands after all rules for every client, where it says what to sign for requests that no other
/// rule is for; one that verifies nothing is left out. An app that meets it instead of the other
/// rule learns that from the answer.
package struct ClientPlan: Sendable {
    /// The version of the document; apps ignore a version that they don't know.
    package static let version = 1

    private let rules: RuleSet
    private let endpoints: String

    /// - endpoints: the path below which the gateway answers itself.
    package init(_ rules: RuleSet, endpoints: String) {
        self.rules = rules
        self.endpoints = endpoints
    }

    /// The document, laid out for people and for version control.
    package var json: [UInt8] {
        var document = JSONWriter(.indented)
        document.object { document in
            document.member("portcullis_plan", Self.version)
            document.member("endpoints", endpoints)
            document.objects("rules", of: listed) { entry, rule in
                entry.member("name", rule.id)
                Self.write(rule.match, to: &entry)
                Self.write(rule, to: &entry)
            }
            if rules.fallback.mode.verifies {
                document.object("unmatched") { Self.write(rules.fallback, to: &$0) }
            } else {
                document.member("unmatched", nil as String?)
            }
        }
        return document.line
    }

    private var listed: [Rule] {
        let named = rules.rules.dropLast()
        return named.filter { $0.match.clients == nil }
            + named.filter { $0.match.clients != nil && $0.mode.verifies }
    }

    private static func write(_ match: RouteMatch, to entry: inout JSONWriter) {
        entry.texts("hosts", [match.host.text])
        // Apps need not know that a rule for GET is for HEAD too.
        let methods = match.methods.map { named in
            named.contains("GET") && !named.contains("HEAD") ? named + ["HEAD"] : named
        }
        entry.texts("methods", methods ?? ["*"])
        entry.texts("paths", [match.path.text])
    }

    /// Writes what has to be proven; `sign` is empty where that is nothing.
    private static func write(_ rule: Rule, to entry: inout JSONWriter) {
        guard rule.mode.verifies else { return entry.texts("sign", []) }
        guard rule.accept.takesAssertions else {
            entry.texts("sign", [])
            return writeTokens(rule, to: &entry)
        }
        entry.texts("sign", rule.signing.words)
        var headers: [String] = []
        switch rule.signing {
        case .lines(_, let names):
            entry.member("form", "lines")
            headers = names
        case .content: entry.member("form", "content")
        case .challenge: entry.member("form", "challenge")
        }
        entry.texts("headers", headers)
        entry.member("challenge", rule.challenge.rawValue)
        if rule.challenge != .none, case .jsonPointer(let pointer) = rule.challengeSource {
            entry.member("challenge_pointer", pointer.text)
        }
        switch rule.body {
        case .none: entry.member("digest", "none")
        case .held: entry.member("digest", "held")
        case .streamed: entry.member("digest", "streamed")
        }
        switch rule.counter {
        case .strict: entry.member("counter", "strict")
        case .window(let width): entry.member("counter", width)
        }
        entry.texts("accept", rule.accept.signedNames)
        writeTokens(rule, to: &entry)
        if rule.device != nil { entry.member("device", true) }
        write(rule.fields, to: &entry)
    }

    /// Writes the tokens that the rule names, and what each is for.
    private static func writeTokens(_ rule: Rule, to entry: inout JSONWriter) {
        guard rule.namesTokens else { return }
        entry.objects("tokens", of: rule.tokens) { member, token in
            member.member("name", token.name)
            switch token.place {
            case .field(let name): member.member("field", String(decoding: name, as: UTF8.self))
            case .cookie(let name): member.member("cookie", String(decoding: name, as: UTF8.self))
            }
            member.texts("for", rule.purposes(of: token))
        }
    }

    /// The names of fields that are not the usual ones.
    private static func write(_ names: FieldNames, to entry: inout JSONWriter) {
        guard names != .standard else { return }
        entry.object("fields") { fields in
            for (key, name) in names.renamed { fields.member(key, name) }
        }
    }
}

extension FieldNames {
    /// The names that are not the usual ones, by the words of a rule's `fields`.
    fileprivate var renamed: [(key: String, name: String)] {
        let keys = ["key_id", "assertion", "challenge", "unsupported"]
        return zip(keys, zip(all, Self.standard.all)).compactMap { key, names in
            names.0 == names.1 ? nil : (key, String(decoding: names.0, as: UTF8.self))
        }
    }
}

extension Rule {
    /// What the rule takes a token for: in the place of a signature, for devices that can't attest,
    /// beside every other proof, as Google Play's word of an Android phone.
    fileprivate func purposes(of token: TokenProof) -> [String] {
        (accept.tokens.contains(token) ? ["accept"] : [])
            + (unsupported == .require(token) ? ["unsupported"] : [])
            + (also.contains(token) ? ["also"] : [])
            + (integrity?.proof == token ? ["integrity"] : [])
    }
}

/// What a rule tells its clients to sign. Written once, with the rule.
///
/// A value is a list of words separated by spaces: tokens, which a quoted string (RFC 9110 §5.6.4)
/// and a string of structured fields (RFC 8941 §3.3.3) hold without escapes. The width of the
/// counter's window is a number: an integer in structured fields. Without a width, the counter is
/// strict and a client has to send one request at a time. `device="token"` asks for a new device
/// token with each request, and `integrity="token"` one of Google Play's from an Android phone.
/// `tokens` names the proofs of the section `proofs` that the rule takes. `fields` names the fields
/// that are not the usual ones, each as in the plan: `key_id=x-key`. `challenge_pointer` is the
/// place of the challenge in the content, percent-encoded as in the fragment of a URI
/// (RFC 6901 §6).
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
        let names = demands.fields.renamed.map { "\($0.key)=\($0.name)" }
        if !names.isEmpty { parameters.append(("fields", names)) }
        if demands.challenge != .none, case .jsonPointer(let pointer) = demands.challengeSource {
            parameters.append(("challenge_pointer", [Self.percentEncoded(pointer.text)]))
        }
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

    /// A quoted string takes it without escapes: slashes, `~` and RFC 3986's unreserved characters
    /// stay.
    private static func percentEncoded(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "~"),
                UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default: encoded += "%" + Hex.text([byte]).uppercased()
            }
        }
        return encoded
    }
}

extension SigningForm {
    /// The signed parts, without fields, in the words of a rule's `sign`. The form that signs the
    /// challenge alone has a word of its own, since the line form may sign nothing but the
    /// challenge too.
    fileprivate var words: [String] {
        switch self {
        case .content: ["content"]
        case .challenge: ["challenge-text"]
        case .lines(let parts, _): parts.names
        }
    }
}
