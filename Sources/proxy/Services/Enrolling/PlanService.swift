import HTTPWire

/// `GET …/plan`: what requests have to sign, the same for all clients.
///
/// The answer is made once for a set of rules. It has the output of `portcullis plan`, so any
/// client can read the hosts, paths and names of all rules.
struct PlanService: Service {
    /// A plan that is five minutes old costs an app one refusal, and the app then learns the
    /// change.
    private static let caching: StaticString = "public, max-age=300"
    /// Each further piece of this number of bytes costs one more call of the address's rate.
    private static let callBytes = 4 << 10

    private let response: LocalResponse

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        var result = ServiceResult(response)
        result.callsOwed = response.content.count / Self.callBytes
        return .now(result)
    }

    /// The row of a plan.
    static func entry(_ plan: [UInt8]) -> ServiceEntry {
        let tag = LocalResponse.tag(of: plan)
        func entry(
            _ content: [UInt8],
            as success: LocalSuccess,
            unchanged: ServiceEntry.Unchanged?
        ) -> ServiceEntry {
            let response = LocalResponse(
                success,
                as: "application/json",
                content,
                tag: tag,
                caching: caching
            )
            return ServiceEntry(
                "plan",
                [.get, .head],
                on: .init(cost: .call, unchanged: unchanged),
                by: PlanService(response: response)
            )
        }
        let silent = entry([], as: .unchanged, unchanged: nil)
        let unchanged = ServiceEntry.Unchanged(tag: Array(tag.utf8), entry: silent)
        return entry(plan, as: .served, unchanged: unchanged)
    }

    /// The row for programs that only ask which requests the gateway answers.
    static var unserved: ServiceEntry {
        ServiceEntry("plan", [.get, .head], on: .init(cost: .call), by: UnservedService())
    }
}

/// Knows the public key of signed verdicts.
package protocol KeySetSource: Sendable {
    /// Reports the JSON Web Key Set (RFC 7517), once, on any thread; `nil` where verdicts are not
    /// signed, or with a secret.
    func askKeySet(_ completion: @escaping @Sendable ([UInt8]?) -> Void)
}

/// `GET …/jwks`: the public key with which origins check signed verdicts.
struct KeySetService: Service {
    /// A reload makes new services for the public listeners. It leaves those of the operators'
    /// listener, so they ask.
    enum Keys: Sendable {
        case set([UInt8])
        case source(any KeySetSource)
    }

    let keys: Keys

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        switch keys {
        case .set(let set): .now(Self.result(set))
        case .source(let source):
            .later { completion in
                source.askKeySet { set in
                    completion(set.map(Self.result) ?? ServiceResult(.fault(.pageUnknown)))
                }
            }
        }
    }

    private static func result(_ set: [UInt8]) -> ServiceResult {
        ServiceResult(
            LocalResponse(
                .served,
                as: "application/jwk-set+json",
                set,
                tag: LocalResponse.tag(of: set),
                caching: "public, max-age=300"
            )
        )
    }

    /// The row of the public listeners; without keys, for programs that only ask which requests the
    /// gateway answers.
    static func entry(_ keys: [UInt8]?) -> ServiceEntry {
        let service: any Service = keys.map { KeySetService(keys: .set($0)) } ?? UnservedService()
        return ServiceEntry("jwks", [.get, .head], on: .init(cost: .call), by: service)
    }

    /// The row of the operators' listener.
    static func entry(_ source: any KeySetSource) -> ServiceEntry {
        ServiceEntry(
            "jwks",
            [.get, .head],
            on: .init(access: .page),
            by: KeySetService(keys: .source(source))
        )
    }
}
