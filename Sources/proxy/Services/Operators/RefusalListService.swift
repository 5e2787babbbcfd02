import HTTPWire

/// `GET /refusals`: the refusals that were last, as JSON. It tells clients' addresses, so it is
/// served where calls are.
struct RefusalListService: Service {
    /// The most refusals that are told.
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
