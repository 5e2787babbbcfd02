import Encodings
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
            case .metrics: .metrics
            case .status, .origins, .rollout: .page
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
                    completion(snapshot.map { Self.result(page, of: $0, as: format) } ?? late)
                }
            }
        }
    }

    private static func result(
        _ page: Page,
        of snapshot: AdminSnapshot,
        as format: Exposition.Format
    ) -> ServiceResult {
        switch page {
        case .metrics:
            let type: StaticString =
                switch format {
                case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
                case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
                }
            let text = snapshot.metrics(format)
            return ServiceResult(LocalResponse(.served, as: type, Array(text.utf8)))
        case .status: return ServiceResult(json: snapshot.status)
        case .origins: return ServiceResult(text: snapshot.origins.lines)
        case .rollout: return ServiceResult(text: snapshot.rules.lines)
        case .health: return ServiceResult(text: "ok\n")
        case .readiness:
            let reasons = snapshot.unreadiness
            guard let first = reasons.first else {
                // Also an origin whose servers have no address.
                let out = snapshot.origins.filter { !$0.servers.contains(where: \.canServe) }
                let lines = out.map { "no server can serve: \($0.name)\n" }.joined()
                return ServiceResult(text: Readiness.text(snapshot.degradations) + lines)
            }
            return ServiceResult(.fault(first), "reasons", texts: reasons.map(\.rawValue))
        }
    }
}

extension ServiceTable {
    /// The services of an operators' listener, which forwards nothing. It has the kinds of paths
    /// that its gate serves, and no others.
    package static func operators(
        _ source: any SnapshotSource,
        _ calls: OperatorCalls
    ) -> ServiceTable {
        let entries = OperatorService.Page.allCases.map { page in
            ServiceEntry(
                page.rawValue,
                [.get, .head],
                on: .init(access: page.access),
                by: OperatorService(page: page, source: source)
            )
        }
        return ServiceTable(below: "", for: .operators(calls.gate), entries + calls.entries)
    }
}

/// What operators may do through their listener beside reading its pages. A property that is nil is
/// not served.
package struct OperatorCalls {
    /// Makes calls about devices.
    package var devices: (any DeviceCalling)?
    package var origins: (any OriginDraining)?
    package var rollouts: (any RolloutTaking)?
    /// Hands over to another process.
    package var upgrades: (any Handing)?
    /// Knows the last refusals.
    package var refusals: (any RefusalSource)?
    package var reports: (any ReportSource)?
    /// Knows the public key of signed verdicts.
    package var keySet: (any KeySetSource)?
    /// The open trials of fronts.
    package var trials: (any TrialKeeping)?

    /// Decides who may call.
    package var gate = OperatorGate()

    /// Nothing is served.
    package init() {}

    var entries: [ServiceEntry] {
        var entries: [ServiceEntry] = []
        if let devices { entries += ServiceEntry.deviceCalls(devices) }
        if let origins { entries += ServiceEntry.draining(origins) }
        if let rollouts { entries += ServiceEntry.rollouts(rollouts) + [.audit(rollouts)] }
        if let upgrades { entries.append(.upgrading(upgrades)) }
        if let refusals { entries += ServiceEntry.why(refusals) + [.refusals(refusals)] }
        if let trials { entries += ServiceEntry.trials(trials) }
        let calls = entries.isEmpty ? DashboardPage.Calls.none : gate.dashboardCalls
        if let reports { entries += ServiceEntry.reports(reports) }
        if let keySet { entries.append(KeySetService.entry(keySet)) }
        return entries + ServiceEntry.dashboard(calls)
    }
}

/// Drains servers of origins, on the operators' listener.
package protocol OriginDraining: Sendable {
    /// Drains or undrains all addresses of a server, in all origins that have it, also those that
    /// its name gets later. `done` is called once, on any thread, at once.
    func drain(
        _ server: String,
        _ change: DrainChange,
        then done: @escaping @Sendable (DrainOutcome) -> Void
    )
}

/// What became of the change of a server.
package enum DrainOutcome: Sendable {
    /// It was made, for this number of addresses; 0 where the name has none now.
    case made(addresses: Int)
    /// No origin has the server.
    case unknownServer
    /// Nothing has changed, since another process is about to take over.
    case upgrading
}

/// The change of a server. The raw value is the path after `origins/`.
package enum DrainChange: String, CaseIterable, Sendable {
    /// It gets no new request, and requests under way end by themselves.
    case drain
    case undrain
}

/// `POST /origins/drain` and `/origins/undrain`, with the server's name as content.
struct OriginService: Service {
    let change: DrainChange
    let origins: any OriginDraining

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        let name = String(decoding: request.content, as: UTF8.self)
        return .later { [change, origins] completion in
            origins.drain(name, change) { outcome in
                switch outcome {
                case .made(let count):
                    completion(ServiceResult(json: .served) { $0.member("addresses", count) })
                case .unknownServer: completion(ServiceResult(.fault(.noSuchServer)))
                case .upgrading: completion(ServiceResult(.fault(.upgradeRunning)))
                }
            }
        }
    }
}

extension ServiceEntry {
    /// The calls that drain servers.
    static func draining(_ origins: any OriginDraining) -> [ServiceEntry] {
        DrainChange.allCases.map { change in
            ServiceEntry(
                "origins/\(change.rawValue)",
                [.post],
                on: .init(takesContent: true, access: .call),
                by: OriginService(change: change, origins: origins)
            )
        }
    }
}

/// Hands over to another process, on the operators' listener.
package protocol Handing: Sendable {
    /// Starts the program again and hands over to it. `done` is called once, on any thread.
    func upgrade(_ done: @escaping @Sendable (UpgradeReport) -> Void)
}

/// The result of an upgrade.
package enum UpgradeReport: Equatable, Sendable {
    case done(Successor)
    /// Nothing has changed, and why.
    case refused(String)

    /// The process that serves now.
    package struct Successor: Equatable, Sendable {
        let process: Int32
        /// The path of its program.
        let program: String
        let version: String
        /// Why this may not be the program that was meant; `nil` where nothing speaks for that.
        let doubt: String?
        /// The time in which no connection was accepted.
        let pauseMicroseconds: UInt64

        package init(
            process: Int32,
            program: String,
            version: String,
            doubt: String?,
            pauseMicroseconds: UInt64
        ) {
            (self.process, self.program, self.version) = (process, program, version)
            (self.doubt, self.pauseMicroseconds) = (doubt, pauseMicroseconds)
        }
    }
}

/// `POST /upgrade`.
struct UpgradeService: Service {
    let gateway: any Handing

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        .later { [gateway] completion in
            gateway.upgrade { completion(Self.result($0)) }
        }
    }

    private static func result(_ report: UpgradeReport) -> ServiceResult {
        switch report {
        case .done(let successor):
            ServiceResult(json: .served) { document in
                document.member("process", Int(successor.process))
                document.member("program", successor.program)
                document.member("version", successor.version)
                document.member("doubt", successor.doubt)
                document.member("pause_microseconds", Int(clamping: successor.pauseMicroseconds))
            }
        case .refused(let why): ServiceResult(.fault(.upgradeRefused), "problems", texts: [why])
        }
    }
}

extension ServiceEntry {
    static func upgrading(_ gateway: any Handing) -> ServiceEntry {
        ServiceEntry(
            "upgrade",
            [.post],
            on: .init(access: .call),
            by: UpgradeService(gateway: gateway)
        )
    }
}
