import HTTPWire

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
                "application/jwk-set+json",
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
        return ServiceEntry("jwks", [.get, .head], takesContent: false, cost: .call, service)
    }

    /// The row of the operators' listener.
    static func entry(_ source: any KeySetSource) -> ServiceEntry {
        ServiceEntry("jwks", [.get, .head], access: .page, KeySetService(keys: .source(source)))
    }
}
