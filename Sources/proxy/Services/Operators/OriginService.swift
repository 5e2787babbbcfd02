import Encodings
import HTTPWire

/// Drains servers of origins, on the operators' listener.
package protocol OriginDraining: Sendable {
    /// Drains or undrains all addresses of a server, in all origins that have it. `done` gets their
    /// number. It gets `nil` when nothing has changed because another process is about to take
    /// over. It is called once, on any thread, at once.
    func drain(_ server: String, _ change: DrainChange, _ done: @escaping @Sendable (Int?) -> Void)
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
            origins.drain(name, change) { count in
                guard let count else { return completion(ServiceResult(.fault(.upgradeRunning))) }
                guard count > 0 else { return completion(ServiceResult(.fault(.noSuchServer))) }
                completion(ServiceResult(json: .served) { $0.member("addresses", count) })
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
