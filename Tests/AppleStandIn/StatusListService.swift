/// Google's list of revoked certificates, as android.googleapis.com serves it.
struct StatusListService {
    static let path = "/attestation/status"

    private var text = "{\"entries\": {}}"
    private var version = 0
    private var fields: [(String, String)] = []
    var play = StandInPlay.proper
    private(set) var calls: [StandInListCall] = []

    mutating func serve(_ text: String, _ fields: [(String, String)]?) {
        version += 1
        self.text = text
        if let fields { self.fields = fields }
    }

    private var tag: String { "\"list-\(version)\"" }

    mutating func answer(_ request: StandInRequest) -> (StandInPlay, StandInAnswer) {
        let answer = answerProper(request)
        calls.append(
            StandInListCall(
                method: request.method,
                path: request.path,
                tag: request["If-None-Match"],
                hasAuthorization: request["Authorization"] != nil,
                status: answer.status
            )
        )
        return (play, answer)
    }

    private func answerProper(_ request: StandInRequest) -> StandInAnswer {
        if let answer = play.answer { return answer }
        guard request.path == Self.path else { return StandInAnswer(404, "Not Found") }
        guard request.method == "GET", request.bodyCount == 0 else {
            return StandInAnswer(405, "Method Not Allowed")
        }
        let isKnown = request["If-None-Match"] == tag
        var answer = isKnown ? StandInAnswer(304) : StandInAnswer(200, text)
        answer.contentType = "application/json"
        answer.fields = [("ETag", tag)] + fields
        return answer
    }
}

/// A request for the list.
package struct StandInListCall: Hashable, Sendable {
    package let method: String
    package let path: String
    /// The value of `If-None-Match`.
    package let tag: String?
    package let hasAuthorization: Bool
    package let status: Int
}
