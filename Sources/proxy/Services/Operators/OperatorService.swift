import HTTPWire
import Telemetry

/// A page of the operators' listener.
struct OperatorService: Service {
    /// The page; the raw value is its path after the slash.
    enum Page: String, CaseIterable {
        /// All counters, in a text format that Prometheus reads.
        case metrics
        /// All counters for people and scripts, as JSON.
        case status
        /// The state of the origins' servers, one line each.
        case origins
        /// The state of the rules, one line each.
        case rollout
        /// 200 while the process runs; the event loops are not asked.
        case health = "healthz"
        /// 200, or 503 with the reasons not to send traffic here.
        case readiness = "readyz"

        /// Orchestrators probe by any name they know; the other pages tell more.
        var access: OperatorGate.Access {
            switch self {
            case .health, .readiness: .open
            case .metrics, .status, .origins, .rollout: .page
            }
        }
    }

    let page: Page
    let source: any SnapshotSource

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        switch page {
        case .health: .now(ServiceResult(text: "ok\n"))
        case .metrics, .status, .origins, .rollout, .readiness:
            .later { [page, source, format = request.format] completion in
                source.ask { snapshot in
                    let late = ServiceResult(.fault(.gatherTimeout))
                    completion(snapshot.map { Self.result(page, $0, format) } ?? late)
                }
            }
        }
    }

    private static func result(
        _ page: Page,
        _ snapshot: AdminSnapshot,
        _ format: Exposition.Format
    ) -> ServiceResult {
        switch page {
        case .metrics:
            let type: StaticString =
                switch format {
                case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
                case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
                }
            let text = snapshot.metrics(format)
            return ServiceResult(LocalResponse(.served, type, Array(text.utf8)))
        case .status: return ServiceResult(json: snapshot.status)
        case .origins: return ServiceResult(text: snapshot.origins.lines)
        case .rollout: return ServiceResult(text: snapshot.rules.lines)
        case .health: return ServiceResult(text: "ok\n")
        case .readiness:
            let reasons = snapshot.unreadiness
            guard let first = reasons.first else {
                let out = snapshot.origins.filter(\.isOut).map(\.name)
                let lines = out.map { "no server can serve: \($0)\n" }.joined()
                return ServiceResult(text: Readiness.text(snapshot.degradations) + lines)
            }
            return ServiceResult(.fault(first), "reasons", reasons.map(\.rawValue))
        }
    }
}

extension ServiceTable {
    /// The services of the operators' listener, which forwards nothing.
    package static func operators(
        _ source: any SnapshotSource,
        _ calls: OperatorCalls
    ) -> ServiceTable {
        let entries = OperatorService.Page.allCases.map { page in
            ServiceEntry(
                page.rawValue,
                [.get, .head],
                access: page.access,
                OperatorService(page: page, source: source)
            )
        }
        return ServiceTable(
            below: "",
            elsewhere: .unknown,
            entries + calls.entries,
            unknown: .pageUnknown,
            wrongMethod: .methodRefused,
            listsPaths: true,
            gate: calls.gate
        )
    }
}
