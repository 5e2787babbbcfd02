import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the gateway itself has answered: a refusal, and what the route signs.
///
/// An answer is the gateway's with `App-Attest-Error`, or as a 401 with
/// `WWW-Authenticate: AppAttest`. The gateway deletes both from what an origin sends. Anything else
/// is an origin's answer, or one of something in between, and says nothing about keys.
struct OwnAnswer: Sendable {
    let refusal: GatewayRefusal
    let lesson: RouteLesson?

    /// `nil` for the answer of anything else.
    init?(_ response: HTTPURLResponse) {
        // The gateway's own answers are `no-store`. One with an age comes out of a shared cache,
        // which keeps it all the same, and is about another request (RFC 9111 §5.1).
        guard response.value(forHTTPHeaderField: "Age") == nil else { return nil }
        let own = response.value(forHTTPHeaderField: OwnFields.error).flatMap(ErrorField.init)
        // A refused call of gRPC has the status 200, and the fields of a 401.
        if response.statusCode == 401 || own != nil,
            let field = response.value(forHTTPHeaderField: "WWW-Authenticate")
                .flatMap(AuthenticateField.init)
        {
            (refusal, lesson) = (field.refusal, field.lesson)
        } else if let own {
            (refusal, lesson) = (own.refusal, nil)
        } else {
            return nil
        }
    }
}

/// The gateway's challenge in a `WWW-Authenticate` field (RFC 9110 §11.6.1), among those of others:
/// `Basic realm="x", AppAttest error="key-unknown", next="enrol", sign="method target"`.
struct AuthenticateField: Hashable, Sendable {
    let refusal: GatewayRefusal
    /// The challenge to sign again with.
    let challenge: String?
    /// What the route signs.
    let lesson: RouteLesson?

    /// The longest field that is read. A field of the gateway is far shorter.
    private static let bytesMax = 8 << 10

    /// Reads the field; `nil` where the gateway has no part in it.
    init?(_ text: String) {
        guard text.utf8.count <= Self.bytesMax, let parameters = Self.parameters(text),
            let error = parameters["error"]
        else { return nil }
        refusal = GatewayRefusal(
            reason: error,
            next: parameters["next"].flatMap(GatewayRefusal.Next.init)
                ?? (parameters["challenge"] == nil ? .none : .signAgain),
            tokens: (parameters["tokens"] ?? "").split(separator: " ").map(String.init)
        )
        challenge = parameters["challenge"]
        lesson = RouteLesson(parameters)
    }

    /// The parameters of the scheme `AppAttest`. Where the field can't be read on, what came before
    /// counts.
    private static func parameters(_ text: String) -> [String: String]? {
        var reader = FieldReader(text)
        var found: [String: String]?
        // A scheme begins an element of the list; a word elsewhere is none.
        var beginsElement = true
        while !reader.isAtEnd {
            reader.skipSpace()
            if reader.take(",") {
                beginsElement = true
                continue
            }
            guard let scheme = reader.token() else { break }
            reader.skipSpace()
            let isOurs = beginsElement && scheme.lowercased() == "appattest" && found == nil
            beginsElement = false
            if isOurs { found = [:] }
            // A scheme has parameters, or one text of 68 characters that never begins one.
            while true {
                reader.skipSpace()
                while reader.take(",") {
                    beginsElement = true
                    reader.skipSpace()
                }
                guard let (name, value) = reader.parameter() else { break }
                beginsElement = false
                if isOurs, found?[name] == nil { found?[name] = value }
            }
            while reader.take("=") || reader.take("/") {}
        }
        return found
    }
}

/// `App-Attest-Next`: what a request would be told if its rule enforced:
/// `enrol;sign="method target";headers="a b";accept="assertion";counter=64;key="…"`,
/// with `device="token"` where the rule asks for a device token, and with `error="session-unknown"`
/// where the request's session is not taken.
struct NextField: Hashable, Sendable {
    let next: GatewayRefusal.Next
    let lesson: RouteLesson?
    /// The key that the request named; `nil` where it named none, and from older gateways.
    let keyID: String?
    /// Why; `nil` where the field does not say.
    let reason: String?

    init?(_ text: String) {
        guard let item = FieldItem(text), let next = GatewayRefusal.Next(rawValue: item.word)
        else { return nil }
        self.next = next
        keyID = item["key"]
        reason = item["error"]
        lesson = RouteLesson(item.parameters, observes: true)
    }
}

/// `App-Attest-Error`: the gateway itself made this answer. `signature-mismatch;next=none`.
///
/// The gateway deletes every copy of the field that an origin sends, so an answer with it is the
/// gateway's, whatever its status.
struct ErrorField: Hashable, Sendable {
    let refusal: GatewayRefusal

    init?(_ text: String) {
        guard let item = FieldItem(text) else { return nil }
        refusal = GatewayRefusal(
            reason: item.word,
            next: item["next"].flatMap(GatewayRefusal.Next.init) ?? .none
        )
    }
}
