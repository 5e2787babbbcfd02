import HTTPWire

/// Knows the last refusals.
package protocol RefusalSource: Sendable {
    /// Hands over the latest refusals that match a name, or of all, once, on any thread; `nil` when
    /// that takes too long.
    ///
    /// - gateway: the gateway that is asked; `nil` for all of a fleet. For an unknown one
    ///   ``ToldRefusals/gateways`` has none.
    func refusals(
        named name: RefusalName?,
        at gateway: String?,
        _ completion: @escaping @Sendable (ToldRefusals?) -> Void
    )
}

extension RefusalSource {
    fileprivate func answer(
        _ name: RefusalName?,
        to request: ServiceRequest,
        _ result: @escaping @Sendable (ToldRefusals) -> ServiceResult
    ) -> ServiceAnswer {
        .later { [gateway = request.gateway] completion in
            refusals(named: name, at: gateway) { told in
                guard let told else { return completion(ServiceResult(.fault(.gatherTimeout))) }
                guard gateway == nil || told.gateways?.entries.isEmpty == false else {
                    return completion(ServiceResult(.fault(.noSuchGateway)))
                }
                completion(result(told))
            }
        }
    }
}

/// `POST /why` and `/why/json`. The content is a request id, a trace id or the short name of a key.
///
/// It shows clients' addresses, so it is served where calls are.
struct WhyService: Service {
    /// The form of the answer. The raw value is the name of the service.
    enum Layout: String, CaseIterable {
        case text = "why"
        case json = "why/json"
    }

    let layout: Layout
    let source: any RefusalSource

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        guard let name = RefusalName(request.content) else {
            return .now(ServiceResult(.fault(.noSuchRefusal)))
        }
        return source.answer(name, to: request) { [layout] told in
            guard told.isEmpty else { return Self.result(told, layout) }
            guard let gateways = told.gateways else { return ServiceResult(.fault(.noSuchRefusal)) }
            return ServiceResult(.fault(.noSuchRefusal), "problems", texts: gateways.remarks)
        }
    }

    private static func result(_ told: ToldRefusals, _ layout: Layout) -> ServiceResult {
        switch layout {
        case .text: ServiceResult(text: told.text)
        case .json: ServiceResult(json: told.json)
        }
    }
}

extension ServiceEntry {
    static func why(_ source: any RefusalSource) -> [ServiceEntry] {
        WhyService.Layout.allCases.map { layout in
            ServiceEntry(
                layout.rawValue,
                [.post],
                on: .init(takesContent: true, access: .lookup),
                by: WhyService(layout: layout, source: source)
            )
        }
    }
}

/// `GET /refusals`: the last refusals, as JSON. It shows clients' addresses, so it is served where
/// calls are.
struct RefusalListService: Service {
    let source: any RefusalSource

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        source.answer(nil, to: request) { ServiceResult(json: $0.json) }
    }
}

extension ServiceEntry {
    static func refusals(_ source: any RefusalSource) -> ServiceEntry {
        ServiceEntry(
            "refusals",
            [.get],
            on: .init(access: .lookup),
            by: RefusalListService(source: source)
        )
    }
}
