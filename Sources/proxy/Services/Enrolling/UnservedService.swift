/// Stands in a table that is only searched: it answers as an unknown path does.
struct UnservedService: Service {
    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        .now(ServiceResult(.fault(.endpointUnknown)))
    }
}
