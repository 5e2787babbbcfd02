import HTTPWire

/// Knows the last refusals.
package protocol RefusalSource: Sendable {
    /// Hands over the refusals that match a name, or all, once, on any thread; `nil` when that
    /// takes too long.
    func refusals(
        named name: RefusalName?,
        _ completion: @escaping @Sendable ([RefusalNote]?) -> Void
    )
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
        return .later { [layout, source] completion in
            source.refusals(named: name) { notes in
                guard let notes else { return completion(ServiceResult(.fault(.gatherTimeout))) }
                guard !notes.isEmpty else {
                    return completion(ServiceResult(.fault(.noSuchRefusal)))
                }
                completion(ServiceResult(Self.response(notes, layout)))
            }
        }
    }

    private static func response(_ notes: [RefusalNote], _ layout: Layout) -> LocalResponse {
        switch layout {
        case .text:
            LocalResponse(.served, "text/plain; charset=utf-8", Array(notes.text.utf8))
        case .json: LocalResponse(.served, "application/json", notes.json())
        }
    }
}

extension ServiceEntry {
    static func why(_ source: any RefusalSource) -> [ServiceEntry] {
        WhyService.Layout.allCases.map { layout in
            ServiceEntry(
                layout.rawValue,
                [.post],
                takesContent: true,
                cost: .nothing,
                access: .call,
                WhyService(layout: layout, source: source)
            )
        }
    }
}

/// `GET /refusals`: the last refusals, as JSON. It shows clients' addresses, so it is served where
/// calls are.
struct RefusalListService: Service {
    /// The most refusals that are listed.
    private static let toldMax = 50

    let source: any RefusalSource

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        .later { [source] completion in
            source.refusals(named: nil) { notes in
                guard let notes else { return completion(ServiceResult(.fault(.gatherTimeout))) }
                let response = LocalResponse(
                    .served,
                    "application/json",
                    notes.json(atMost: Self.toldMax)
                )
                completion(ServiceResult(response))
            }
        }
    }
}

extension ServiceEntry {
    static func refusals(_ source: any RefusalSource) -> ServiceEntry {
        ServiceEntry(
            "refusals",
            [.get],
            takesContent: false,
            cost: .nothing,
            access: .call,
            RefusalListService(source: source)
        )
    }
}
