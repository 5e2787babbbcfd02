package import AppleServices
package import Cryptography

/// What was called.
package struct StandInCalls: Sendable {
    package struct Sighting: Sendable {
        package let host: AppleHost
        package let path: String
        /// The service that the path names; `nil` when it is none of the host's.
        package let service: AppleService?
        /// The value of `Authorization`.
        package let authorization: String?
        package let contentType: String?
        /// By the stand-in's clock.
        package let time: UnixTime
        /// Monotonic milliseconds.
        package let tick: UInt64
        /// What was answered; `nil` for no HTTP.
        package var status: Int?
    }

    package private(set) var all: [Sighting] = []
    /// The tokens of all calls, each once, in the order of their first calls.
    package private(set) var tokens: [String] = []

    package var count: Int { all.count }

    /// The calls of a service.
    package func of(_ service: AppleService) -> [Sighting] { all.filter { $0.service == service } }

    /// The statuses that were answered.
    package var statuses: [Int?] { all.map(\.status) }

    mutating func add(_ sighting: Sighting, token: String?) {
        all.append(sighting)
        if let token, !tokens.contains(token) { tokens.append(token) }
    }
}
