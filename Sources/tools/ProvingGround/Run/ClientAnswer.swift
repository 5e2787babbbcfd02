import Foundation

/// How a request of the app ended.
enum ClientOutcome: String, Sendable, CaseIterable {
    case answered, unfit, failed
    case mayHaveRun = "may-have-run"
    case getToken = "get-token"
}

/// What the app got for one request, as the driver says it.
struct ClientAnswer: Sendable, Decodable {
    var outcome: String
    var status: Int?
    var fields: [String: String]?
    var error: String?
    var tokens: [String]?

    /// The value of a field.
    subscript(name: String) -> String? {
        fields?.first { $0.key.lowercased() == name.lowercased() }?.value
    }

    /// For people: `answered 200`, `failed: no route`.
    var text: String {
        let word = [outcome, status.map(String.init)].compactMap { $0 }.joined(separator: " ")
        return error.map { "\(word): \($0)" } ?? word
    }

    func isA(_ outcome: String, _ status: Int?) -> Bool {
        self.outcome == outcome && (status == nil || self.status == status)
    }
}

/// The result of a step, as the driver says it.
struct StepResult: Sendable, Decodable {
    var answers: [ClientAnswer]?
    var error: String?
}

/// The driver's first content: which client it is.
struct ClientIntroduction: Sendable, Decodable {
    var client: String
    var platform: String
    var offers: [String]?
}
