import RequestBinding

/// A plan as JSON has it, before anything is checked. The names are the file's.
struct PlanDraft: Decodable {
    struct Version: Decodable {
        let portcullis_plan: Int
    }

    struct Fields: Codable {
        let key_id: String?
        let assertion: String?
        let challenge: String?
        let unsupported: String?
    }

    /// `"strict"`, or the size of a window.
    enum Counter: Codable {
        case text(String)
        case window(Int)

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let window = try? value.decode(Int.self) {
                self = .window(window)
            } else {
                self = .text(try value.decode(String.self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var value = encoder.singleValueContainer()
            switch self {
            case .text(let text): try value.encode(text)
            case .window(let window): try value.encode(window)
            }
        }
    }

    /// What a rule asks, or the gateway of requests that match none.
    struct Demand: Codable {
        let sign: [String]
        let form: String?
        let headers: [String]?
        let challenge: String?
        let challenge_pointer: String?
        let digest: String?
        let counter: Counter?
        let accept: [String]?
        let device: Bool?
        let fields: Fields?
    }

    struct Rule: Decodable {
        let name: String
        let hosts: [String]?
        let methods: [String]?
        let paths: [String]?
        let demand: Demand

        private enum Key: String, CodingKey { case name, hosts, methods, paths }

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: Key.self)
            name = try values.decode(String.self, forKey: .name)
            hosts = try values.decodeIfPresent([String].self, forKey: .hosts)
            methods = try values.decodeIfPresent([String].self, forKey: .methods)
            paths = try values.decodeIfPresent([String].self, forKey: .paths)
            demand = try Demand(from: decoder)
        }
    }

    let rules: [Rule]
    let unmatched: Demand?
}

extension PlanDraft.Demand {
    /// What is asked; `nil` for nothing.
    func requirement(of rule: String) throws(SigningPlanError) -> SigningRequirement? {
        guard !sign.isEmpty else { return nil }
        var requirement = SigningRequirement(form: try signingForm(of: rule))
        requirement.challengePointer = challenge_pointer
        requirement.needsContentDigest = digest == "streamed"
        requirement.needsDeviceToken = device ?? false
        if let challenge {
            guard let value = SigningRequirement.Challenge(rawValue: challenge) else {
                throw .unknown(rule: rule, value: challenge)
            }
            requirement.challenge = value
        }
        switch counter {
        case .window(let window):
            // A gateway has none that is wider; by one it can't have, requests go one at a time.
            let isWindow = (1...RouteLesson.windowMax).contains(window)
            requirement.counter = isWindow ? .window(window) : .strict
        case .text("strict"): requirement.counter = .strict
        case .text(let text): throw .unknown(rule: rule, value: text)
        // Older gateways had no other counter.
        case nil: requirement.counter = .strict
        }
        if let accept {
            // A kind of proof that this client does not know is one that it does not use.
            requirement.accepts = Set(accept.compactMap(SigningRequirement.Kind.init))
        }
        if let fields {
            let usual = ProofFieldNames()
            requirement.fields = ProofFieldNames(
                keyID: fields.key_id ?? usual.keyID,
                assertion: fields.assertion ?? usual.assertion,
                challenge: fields.challenge ?? usual.challenge,
                unsupported: fields.unsupported ?? usual.unsupported
            )
        }
        // A plan comes over a network: no name in it may break or reframe a request.
        if case .lines(_, let headers) = requirement.form {
            for name in headers where !Self.isFieldName(name) {
                throw .unknown(rule: rule, value: name)
            }
        }
        let names = [
            requirement.fields.keyID, requirement.fields.assertion, requirement.fields.challenge,
            requirement.fields.unsupported,
        ]
        for name in names where !Self.isFieldName(name) || Self.framing.contains(name.lowercased())
        {
            throw .unknown(rule: rule, value: name)
        }
        return requirement
    }

    /// Fields that say where a request goes, how long it is and what becomes of its connection.
    private static let framing: Set<String> = [
        "host", "connection", "content-length", "content-type", "content-encoding",
        "content-digest", "date", "expect", "keep-alive", "te", "trailer", "transfer-encoding",
        "upgrade", "cookie", "proxy-authorization", "proxy-connection",
    ]

    /// Whether it is a token (RFC 9110 §5.6.2) of a usual length.
    private static func isFieldName(_ name: String) -> Bool {
        var reader = FieldReader(name)
        return name.utf8.count <= 128 && reader.token() != nil && reader.isAtEnd
    }

    private func signingForm(of rule: String) throws(SigningPlanError) -> SigningForm {
        switch form ?? "lines" {
        case "lines":
            guard let parts = SignedParts(names: sign) else {
                throw .unknown(rule: rule, value: sign.joined(separator: " "))
            }
            return .lines(parts, headers: (headers ?? []).map { $0.lowercased() })
        case "content": return .content
        case "challenge": return .challenge
        case let form: throw .unknown(rule: rule, value: form)
        }
    }
}

extension PlanDraft.Demand {
    /// As a plan would ask for it.
    init(_ requirement: SigningRequirement) {
        switch requirement.form {
        case .lines(let parts, let names): (sign, form, headers) = (parts.names, "lines", names)
        case .content: (sign, form, headers) = (["content"], "content", nil)
        case .challenge: (sign, form, headers) = (["challenge-text"], "challenge", nil)
        }
        challenge = requirement.challenge.rawValue
        challenge_pointer = requirement.challengePointer
        digest = requirement.needsContentDigest ? "streamed" : "held"
        switch requirement.counter {
        case .strict: counter = .text("strict")
        case .window(let window): counter = .window(window)
        }
        accept = requirement.accepts.map(\.rawValue).sorted()
        device = requirement.needsDeviceToken
        fields = PlanDraft.Fields(
            key_id: requirement.fields.keyID,
            assertion: requirement.fields.assertion,
            challenge: requirement.fields.challenge,
            unsupported: requirement.fields.unsupported
        )
    }
}

/// A path pattern: `/v1/orders`, `/v1/users/*`, `/v1/files/**`.
struct PlanPath: Hashable, Sendable {
    private enum Segment: Hashable {
        case literal([UInt8])
        /// `*`: any one segment that is not empty.
        case one
    }

    private let segments: [Segment]
    /// Whether it ends in `**`, which takes any rest, also none: `/v1/**` takes `/v1`.
    private let hasRest: Bool

    init(_ text: String) {
        var parts = RequestPlace.parts(text.utf8)
        hasRest = parts.last.map { $0.elementsEqual("**".utf8) } ?? false
        if hasRest { parts.removeLast() }
        segments = parts.map { part in
            part.elementsEqual("*".utf8) ? .one : .literal(RequestPlace.decoded(part))
        }
    }

    /// Whether a path of these segments, percent-decoded, is one of them.
    func matches(_ path: [[UInt8]]) -> Bool {
        guard hasRest ? path.count >= segments.count : path.count == segments.count else {
            return false
        }
        return zip(segments, path).allSatisfy { segment, text in
            switch segment {
            case .one: !text.isEmpty
            case .literal(let literal): literal == text
            }
        }
    }
}

/// A rule of a plan: which requests it is for, and what it asks of them.
struct PlanRule: Sendable {
    let name: String
    /// What it asks; `nil` for nothing.
    let requirement: SigningRequirement?
    /// `*`, `*.example.com` or a host as ``RequestPlace`` has it.
    private let hosts: [String]
    /// `nil` for every method.
    private let methods: [String]?
    private let paths: [PlanPath]

    init(_ draft: PlanDraft.Rule) throws(SigningPlanError) {
        name = draft.name
        requirement = try draft.demand.requirement(of: draft.name)
        hosts = (draft.hosts ?? ["*"]).map(RequestPlace.host)
        methods = draft.methods.flatMap { $0.contains("*") ? nil : $0 }
        paths = (draft.paths ?? ["/**"]).map(PlanPath.init)
    }

    func matches(method: String, place: RequestPlace) -> Bool {
        hosts.contains { Self.takes(host: place.host, $0) }
            && (methods?.contains(method) ?? true)
            && paths.contains { $0.matches(place.segments) }
    }

    /// `*.example.com` takes every host with a label or more in front of `example.com`.
    static func takes(host: String, _ pattern: String) -> Bool {
        if pattern == "*" { return true }
        guard pattern.hasPrefix("*.") else { return pattern == host }
        return host.hasSuffix(pattern.dropFirst()) && host.utf8.count > pattern.utf8.count - 1
    }
}
