import Encodings
import HTTPWire

/// Drains servers of origins, on the operators' listener.
package protocol OriginDraining: Sendable {
    /// Drains or undrains all addresses of a server, in all origins that have it, also those that
    /// its name gets later. `done` is called once, on any thread, at once.
    func drain(
        _ server: String,
        _ change: DrainChange,
        _ done: @escaping @Sendable (DrainOutcome) -> Void
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
                takesContent: true,
                access: .call,
                OriginService(change: change, origins: origins)
            )
        }
    }
}
