import HTTPWire

/// `GET /dashboard`: the page that shows in a browser how the gateway stands.
///
/// The page is one document, the same for all who ask. Its script asks `/status` and other pages
/// again and again, so an open page costs a few small requests in a minute, whatever the load.
struct DashboardService: Service {
    let page: DashboardPage

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        var response = LocalResponse(.served, "text/html; charset=utf-8", page.html)
        for (name, value) in page.fields { response.add(name, value) }
        return .now(ServiceResult(response))
    }
}

extension ServiceEntry {
    /// The page, also where somebody types the address alone.
    static func dashboard(_ calls: DashboardPage.Calls) -> [ServiceEntry] {
        let service = DashboardService(page: DashboardPage(calls: calls))
        return ["", "dashboard"].map { name in
            ServiceEntry(
                name,
                [.get, .head],
                takesContent: false,
                cost: .nothing,
                access: .page,
                service
            )
        }
    }
}
