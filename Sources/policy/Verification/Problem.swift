import JSONText

/// The answer to a refused request: a problem document (RFC 9457) and the fields that go with it.
///
/// It tells the client what to do next and nothing about the policy.
package struct Problem: Sendable {
    package let status: Int
    /// Fields in addition to Content-Type, Content-Length, Date and Connection.
    package let fields: [(name: String, value: String)]
    /// The JSON document.
    package let body: String

    /// - Parameters:
    ///   - refusal: the reason; its row decides the rest.
    ///   - challenge: a fresh challenge, for reasons that say "sign again"; base64url text.
    ///   - retryAfter: seconds, for reasons that say "later".
    package init(_ refusal: Refusal, challenge: String? = nil, retryAfter: Int = 1) {
        let row = refusal.row
        status = row.status
        var fields: [(name: String, value: String)] = [("Cache-Control", "no-store")]
        var challengeMember: String?
        if row.status == 401 {
            // RFC 9110 §15.5.2: a 401 carries at least one challenge of the scheme that is asked
            // for.
            var parameters = #"AppAttest error="\#(refusal.rawValue)""#
            if let challenge { parameters += #", challenge="\#(challenge)""# }
            fields.append(("WWW-Authenticate", parameters))
        }
        if row.nextStep == .signAgain, let challenge {
            fields.append(("App-Attest-Challenge", challenge))
            challengeMember = challenge
        }
        if row.nextStep == .retryLater {
            fields.append(("Retry-After", String(max(retryAfter, 1))))
        }
        self.fields = fields
        var json = JSONWriter()
        json.object { json in
            json.member("type", "about:blank")
            json.member("title", row.summary)
            json.member("status", row.status)
            json.member("reason", refusal.rawValue)
            json.member("next", row.nextStep.rawValue)
            if let challengeMember { json.member("challenge", challengeMember) }
        }
        json.endLine()
        body = json.text
    }
}
