import HTTPWire

/// Gives reports.
package protocol ReportSource: Sendable {
    /// Collects the counts of the event loops, in a fleet those of all gateways, and hands over a
    /// report, once, on any thread; `nil` when that takes too long. Where the gateway that is asked
    /// about is unknown, ``Report/gateways`` has none.
    func report(of scope: ReportScope, _ completion: @escaping @Sendable (Report?) -> Void)
}

/// The pages of the report. The content, if any, is the id of the one rule that the report is
/// about.
///
/// They change nothing and name no client, key or address, so they are served where metrics are.
struct ReportService: Service {
    /// The form of the answer.
    enum Layout {
        case json
        case text
        case series
        /// Lines for people, grouped over all rules.
        case groups(ReportGrouping)
    }

    let layout: Layout
    let windows: [ReportWindow]
    let source: any ReportSource

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        let rule = request.content.isEmpty ? nil : String(decoding: request.content, as: UTF8.self)
        let scope = ReportScope(rule: rule, windows: windows, gateway: request.gateway)
        return .later { [layout, source] completion in
            source.report(of: scope) { report in
                guard let report else { return completion(ServiceResult(.fault(.gatherTimeout))) }
                guard scope.gateway == nil || report.gateways?.entries.isEmpty == false else {
                    return completion(ServiceResult(.fault(.noSuchGateway)))
                }
                guard rule == nil || !report.entries.isEmpty else {
                    return completion(ServiceResult(.fault(.noSuchRule)))
                }
                completion(Self.result(report, layout))
            }
        }
    }

    private static func result(_ report: Report, _ layout: Layout) -> ServiceResult {
        switch layout {
        case .json: ServiceResult(json: report.json)
        case .series: ServiceResult(json: report.seriesJSON)
        case .text: ServiceResult(text: report.text)
        case .groups(let grouping): ServiceResult(text: report.text(by: grouping))
        }
    }
}

extension ServiceEntry {
    /// `report` and `report/series`, and for each window `report/1h`, `report/1h/text`,
    /// `report/1h/os` and `report/1h/build`.
    static func reports(_ source: any ReportSource) -> [ServiceEntry] {
        func page(
            _ name: String,
            _ layout: ReportService.Layout,
            over windows: [ReportWindow] = ReportWindow.allCases
        ) -> ServiceEntry {
            ServiceEntry(
                name,
                [.get, .head, .post],
                on: .init(takesContent: true, access: .page),
                by: ReportService(layout: layout, windows: windows, source: source)
            )
        }
        return [page("report", .json), page("report/series", .series)]
            + ReportWindow.allCases.flatMap { window in
                let name = "report/\(window.rawValue)"
                let groups = ReportGrouping.allCases.map { grouping in
                    page("\(name)/\(grouping.rawValue)", .groups(grouping), over: [window])
                }
                return [
                    page(name, .json, over: [window]), page("\(name)/text", .text, over: [window]),
                ]
                    + groups
            }
    }
}
