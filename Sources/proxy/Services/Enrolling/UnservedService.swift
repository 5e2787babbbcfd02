/// Stands in a table that is only searched: it answers as a path that nobody serves.
struct UnservedService: Service {
    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        .now(ServiceResult(.fault(.endpointUnknown)))
    }
}
