import HTTPWire
import Verification

/// A response that the gateway makes itself.
struct LocalAnswer {
    let status: Int
    /// For the log; empty where nothing went wrong.
    let reason: String
    let fields: [(name: String, value: String)]
    let contentType: String
    let body: String

    /// The answer to a refusal.
    init(_ problem: Problem) {
        status = problem.status
        reason = ""
        fields = problem.fields
        contentType = "application/problem+json"
        body = problem.body
    }

    /// A JSON document of an endpoint.
    init(status: Int, json body: String) {
        self.status = status
        reason = ""
        fields = [("Cache-Control", "no-store")]
        contentType = "application/json"
        self.body = body
    }

    private init(status: Int, reason: String, fields: [(name: String, value: String)], body: String)
    {
        self.status = status
        self.reason = reason
        self.fields = fields
        contentType = "application/problem+json"
        self.body = body
    }

    /// The answer to what is no request, or to what an origin failed to answer.
    static func error(
        status: Int,
        reason: String,
        fields: [(name: String, value: String)] = []
    ) -> LocalAnswer {
        let body = #"{"type":"about:blank","status":\#(status),"reason":"\#(reason)"}"# + "\n"
        return LocalAnswer(
            status: status,
            reason: reason,
            fields: [("Cache-Control", "no-store")] + fields,
            body: body
        )
    }

    /// An answer without content.
    static func empty(status: Int) -> LocalAnswer {
        LocalAnswer(status: status, reason: "", fields: [], body: "")
    }

    /// All fields but those of the connection and the framing.
    var allFields: [(name: String, value: String)] {
        body.isEmpty ? fields : [("Content-Type", contentType)] + fields
    }

    /// Appends head and content; for HEAD the head alone.
    func write(into out: inout [UInt8], date: [UInt8], closes: Bool, isHead: Bool) {
        HeadWriter.beginLocalResponse(
            status: status,
            date: date,
            framing: .length(UInt64(body.utf8.count)),
            connection: closes ? .close : .keep,
            into: &out
        )
        if !body.isEmpty { HeadWriter.field("Content-Type", text: contentType, into: &out) }
        for (name, value) in fields {
            HeadWriter.field(text: Array(name.utf8), Array(value.utf8), into: &out)
        }
        HeadWriter.endHead(into: &out)
        if !isHead { out.append(contentsOf: body.utf8) }
    }
}
