import RequestBinding

/// A plan as JSON has it, before anything is checked. The names are the file's.
struct PlanDraft: Decodable {
    struct Version: Decodable {
        let portcullis_plan: Int
    }

    struct Fields: Decodable {
        let key_id: String?
        let assertion: String?
        let challenge: String?
        let unsupported: String?
    }

    /// `"strict"`, or the size of a window.
    enum Counter: Decodable {
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
    }

    /// What a rule asks, or the gateway of requests that match none.
    struct Demand: Decodable {
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
        case .window(let window): requirement.counter = .window(window)
        case .text("strict"): requirement.counter = .strict
        case .text(let text): throw .unknown(rule: rule, value: text)
        case nil: break
        }
        if let accept {
            // A kind of proof that this client does not know is one that it does not use.
            requirement.accepts = Set(accept.compactMap(SigningRequirement.Kind.init))
        }
        if let fields {
            let usual = ProofFields()
            requirement.fields = ProofFields(
                keyID: fields.key_id ?? usual.keyID,
                assertion: fields.assertion ?? usual.assertion,
                challenge: fields.challenge ?? usual.challenge,
                unsupported: fields.unsupported ?? usual.unsupported
            )
        }
        return requirement
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
