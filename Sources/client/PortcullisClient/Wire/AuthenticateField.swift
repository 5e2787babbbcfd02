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
                ?? (parameters["challenge"] == nil ? .none : .signAgain)
        )
        challenge = parameters["challenge"]
        lesson = RouteLesson(
            sign: parameters["sign"],
            headers: parameters["headers"],
            accept: parameters["accept"],
            counter: parameters["counter"],
            device: parameters["device"]
        )
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
