/// One claim about clients: what is set up, what the client is made to do, and what has to be seen.
/// It is a file of data.
package struct ProvingCase: Sendable {
    /// The folder of its file.
    package let group: String
    /// The name of its file, without `.yaml`.
    package let file: String
    /// The claim, as a sentence.
    package let name: String
    /// Why it matters, and where that stands.
    package let why: String
    /// The heading in machine.md, as the fragment of its address.
    package let section: String
    /// What a client has to offer.
    let needs: [ClientOffer]
    let platforms: [ProvingPlatform]
    /// Whether a short run has it.
    let isAlways: Bool
    let gateway: PlayedConfiguration
    let middle: [PlayedFault]
    let origin: [PlayedFault]
    let device: [PlayedFault]
    let steps: [CaseStep]
    /// What has to hold of the whole case.
    let expected: [ProvingExpectation]

    /// As `--only` names it.
    package var path: String { "\(group)/\(file)" }
}

/// What not all clients can do.
package enum ClientOffer: String, Sendable, CaseIterable {
    case clock, plan, sessions, processes, installs, support, contexts, redirects, reset, prewarm
    case deviceTokens = "device-tokens"
}

/// A step of a case.
struct CaseStep: Sendable {
    enum Deed: Sendable {
        case start(ClientStart)
        case send(ClientSending)
        case clock(Double)
        case prewarm
        case reset(context: String?)
        case signOut
        case stop
        case gateway(GatewayDeed)
        case rules([GatewayRule])
        case middle([PlayedFault])
        case origin([PlayedFault])
        case device([PlayedFault])
        /// The device loses its keys.
        case loseKeys
        /// The server waits.
        case wait(Double)
        /// The server waits until all this holds, counted from the beginning of the case.
        case until([ProvingExpectation], within: Double)
    }

    let deed: Deed
    /// The client that does it.
    let process: Int
    let expected: [ProvingExpectation]
    /// The line in the case's file.
    let line: Int
}

/// What an operator, or an accident, does to the gateway.
enum GatewayDeed: String, Sendable, CaseIterable {
    case restart, wipe, stop, start, revoke
}

/// How a client is made.
struct ClientStart: Sendable {
    /// What it finds.
    enum State: String, CaseIterable {
        /// Nothing, and no other client runs.
        case new
        /// What clients of this case have stored.
        case kept
        /// Nothing, beside the others: an install of its own.
        case another
    }

    var state = State.new
    /// What the system says about the device.
    var isSupported = true
    var plan = false
    var sessions = false
    var context: String?
}

/// What a client sends.
struct ClientSending: Sendable {
    var method = "GET"
    var path = "/orders/1"
    var fields: [(name: String, value: String)] = []
    /// Where it is text, a challenge of the gateway stands in the place of `{challenge}`.
    var content: [UInt8]?
    var count = 1
    /// Clients that send the same at the same time.
    var beside: [Int] = []

    /// How many requests it comes to.
    var total: Int { count * (1 + beside.count) }
}

/// Something that has to be seen.
struct ProvingExpectation: Sendable {
    let measure: ProvingMeasure
    let bounds: ExpectedRange
    /// The line in the case's file.
    let line: Int
}

/// What is counted.
enum ProvingMeasure: Sendable {
    case count(Count)
    /// Refusals of the gateway with a reason.
    case refusals(String)
    /// Answers that the app got: `answered 200`, or an outcome with any status.
    case answers(outcome: String, status: Int?)
    /// All answers but these.
    case otherAnswers(outcome: String, status: Int?)
    /// How long the step took the driver.
    case seconds
    /// The answers that have a field with this value; `any` for each.
    case answerField(name: String, value: String)
    /// The answers with the names of these tokens.
    case tokens([String])
    /// Requests as the middle or the origin saw them.
    case seen(SeenQuery)

    /// What is counted without more words.
    enum Count: String, Sendable, CaseIterable {
        case attestations, keys, signatures, challenges, enrolments, sessions, plans, requests
        case proofs, unproven, unsupported, executions, repeats
        case deviceTokens = "device-tokens"
        case sessionProofs = "session-proofs"

        /// What it counts, for people.
        var text: String {
            switch self {
            case .attestations: "attestations of the device"
            case .keys: "keys made"
            case .signatures: "signatures of the device"
            case .challenges: "calls of …/challenges"
            case .enrolments: "calls of …/keys"
            case .sessions: "calls of …/sessions"
            case .plans: "calls of …/plan"
            case .requests: "requests of the app that arrived"
            case .proofs: "requests with an assertion"
            case .unproven: "requests without a proof"
            case .unsupported: "requests with App-Attest-Unsupported"
            case .executions: "requests that the origin ran"
            case .repeats: "orders that the origin ran again"
            case .deviceTokens: "device tokens made"
            case .sessionProofs: "requests signed in a session"
            }
        }
    }
}

/// Which requests are counted.
struct SeenQuery: Sendable {
    /// At the origin; else at the middle.
    var isAtOrigin = false
    var method: String?
    /// As in `at` of a fault.
    var place = FaultPlace.all
    var status: Int?
    /// Fields that it has, with their values; `any` for each.
    var with: [(name: String, value: String)] = []
    /// Fields that it does not have.
    var without: [String] = []

    /// For people.
    var text: String {
        var words = ["requests"]
        if let method { words[0] = "\(method) requests" }
        switch place {
        case .all: break
        case .endpoints: words.append("to the endpoints")
        case .endpoint(let place): words.append("to …/\(place.rawValue)")
        case .requests: words.append("of the app")
        case .path(let path): words.append("to \(path)")
        case .device(let call): words.append("of \(call.rawValue)")
        }
        if let status { words.append("answered \(status)") }
        for field in with {
            words.append("with \(field.name)\(field.value == "any" ? "" : ": \(field.value)")")
        }
        for name in without { words.append("without \(name)") }
        words.append(isAtOrigin ? "at the origin" : "at the gateway")
        return words.joined(separator: " ")
    }
}

/// The numbers that are right: `3`, `1...3`, `...0.5`, `2...`.
struct ExpectedRange: Sendable, Equatable {
    let least: Double
    let most: Double

    init?(_ text: String) {
        let words = text.split(separator: "...", omittingEmptySubsequences: false)
        guard (1...2).contains(words.count) else { return nil }
        if words.count == 1 {
            guard let number = Double(text), number.isFinite, number >= 0 else { return nil }
            (least, most) = (number, number)
            return
        }
        let low = words[0].isEmpty ? 0 : Double(words[0])
        let high = words[1].isEmpty ? .infinity : Double(words[1])
        guard let low, let high, low >= 0, low <= high, text != "..." else { return nil }
        (least, most) = (low, high)
    }

    func contains(_ number: Double) -> Bool { least <= number && number <= most }

    /// For people.
    var text: String {
        if least == most { return Self.text(least) }
        if most == .infinity { return "at least \(Self.text(least))" }
        if least == 0 { return "at most \(Self.text(most))" }
        return "\(Self.text(least)) to \(Self.text(most))"
    }

    static func text(_ number: Double) -> String {
        let hundredths = (number * 100).rounded() / 100
        return hundredths == hundredths.rounded() && hundredths < 1e15
            ? String(Int(hundredths)) : String(hundredths)
    }
}
