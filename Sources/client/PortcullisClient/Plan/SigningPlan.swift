public import Foundation
import RequestBinding

/// What the gateway's rules ask of each route, as `portcullis plan` writes it, to be shipped with
/// the app.
///
/// A plan saves the first round trip to each route. Where it is silent or outdated, the client
/// learns from the gateway's answers.
public struct SigningPlan: Sendable {
    /// What a plan says about a request.
    ///
    /// Frozen: a later plan says more in the requirement.
    @frozen
    public enum Answer: Hashable, Sendable {
        /// The rule of this name asks for this.
        case rule(String, SigningRequirement)
        /// The rule of this name asks for nothing.
        case off(String)
        /// No rule matches, and the gateway asks for this of such requests.
        case unmatched(SigningRequirement)
        /// The plan does not say.
        case silent
    }

    /// In matching order: the first that matches counts.
    let rules: [PlanRule]
    let unmatched: SigningRequirement?

    /// Reads a plan.
    ///
    /// - Parameter json: the file that `portcullis plan` wrote.
    /// - Throws: why it is no plan of this version.
    public init(json: Data) throws(SigningPlanError) {
        let draft: PlanDraft
        do {
            let version = try JSONDecoder().decode(PlanDraft.Version.self, from: json)
            guard version.portcullis_plan == 1 else {
                throw SigningPlanError.version(version.portcullis_plan)
            }
            draft = try JSONDecoder().decode(PlanDraft.self, from: json)
        } catch let error as SigningPlanError {
            throw error
        } catch {
            throw .malformed(String(describing: error))
        }
        var rules: [PlanRule] = []
        for rule in draft.rules { rules.append(try PlanRule(rule)) }
        self.rules = rules
        unmatched = try draft.unmatched?.requirement(of: "unmatched")
    }

    /// What the plan says about a request.
    ///
    /// - Parameters:
    ///   - method: as in the request line.
    ///   - url: the URL that is sent.
    /// - Returns: what the first rule says that matches.
    public func answer(method: String, url: URL) -> Answer {
        guard let place = RequestPlace(url) else { return .silent }
        return answer(method: method, place: place)
    }

    func answer(method: String, place: RequestPlace) -> Answer {
        for rule in rules where rule.matches(method: method, place: place) {
            guard let requirement = rule.requirement else { return .off(rule.name) }
            return .rule(rule.name, requirement)
        }
        return unmatched.map(Answer.unmatched) ?? .silent
    }
}

/// Why a text is no plan.
///
/// May grow: a `switch` over it has an `@unknown default`.
#if hasAttribute(nonexhaustive)
    @nonexhaustive(warn)
#endif
public enum SigningPlanError: Error, Hashable, Sendable {
    /// It is no JSON of a plan's shape. The text says where.
    case malformed(String)
    /// It is a plan of another version than 1. Take a newer client.
    case version(Int)
    /// A rule says something that this client does not know: its name, and what it says.
    case unknown(rule: String, value: String)
}

extension SigningPlanError: LocalizedError {
    /// A sentence for a log or a developer.
    public var errorDescription: String? {
        switch self {
        case .malformed(let place): "The plan can't be read: \(place)"
        case .version(let version): "The plan is of version \(version). Take a newer client."
        case .unknown(let rule, let value):
            "The plan's rule \(rule) says \(value), which this client does not know."
        }
    }
}

extension SignedParts {
    /// The parts of these names, as plans and the gateway's answers write them; `nil` when a name
    /// is none of them.
    init?(names: some Sequence<some StringProtocol>) {
        var parts: SignedParts = []
        for name in names {
            switch name {
            case "method": parts.insert(.method)
            case "target": parts.insert(.target)
            case "body": parts.insert(.body)
            case "challenge": parts.insert(.challenge)
            default: return nil
            }
        }
        self = parts
    }

    /// The same names.
    var names: [String] {
        let words: [(SignedParts, String)] = [
            (.method, "method"), (.target, "target"), (.body, "body"), (.challenge, "challenge"),
        ]
        return words.filter { contains($0.0) }.map(\.1)
    }
}
