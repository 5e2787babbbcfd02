// The gateway's calls to Apple's servers, as values and machines without I/O, clock or lock.
//
//   AppleCalling                  where calls are handed in
//   AppleService, AppleCall       what is asked: a receipt's renewal, or one of DeviceCheck's calls
//   AppleCalls, AppleSettings     Apple as a party that is called: how a call is written
//   AppleCredential               a team's key; AppleKeyFault says why a file holds none
//   ProviderToken                 the token that a call carries
//   AppleHost                     where calls go
//   DeviceQuestion, DeviceReply   DeviceCheck's three calls, with their bodies and answers
//   RenewalSchedule               which receipt is renewed when; RenewalQueue holds the next few
//   ReceiptReply                  what Apple's answer says of a receipt
//
// `CallQueue` is the machine that all calls share. `CallClient` performs its decisions, and
// `ReceiptRenewer` those about receipts. The gateway has both by `AppleParty` and `ReceiptParty`.

package import KeyStore
package import OutboundCalls

/// A query to Apple. The raw value is a label of metrics.
package enum AppleService: String, CaseIterable, Hashable, Sendable {
    /// A newer receipt for an older one (Apple, "Assessing fraud risk").
    case receipts
    /// The two bits of a device (Apple, "Accessing and modifying per-device data").
    case queryBits = "query-bits"
    /// Writes both bits.
    case updateBits = "update-bits"
    /// Whether a device token is genuine.
    case validateToken = "validate-token"

    /// The service of Apple that takes the call. Each has its own hosts, and fails independently.
    package enum Family: String, CaseIterable, Hashable, Sendable {
        case receipts
        case deviceCheck = "device-check"
    }

    package var family: Family {
        switch self {
        case .receipts: .receipts
        case .queryBits, .updateBits, .validateToken: .deviceCheck
        }
    }

    package var contentType: String {
        switch family {
        case .receipts: "text/plain"
        case .deviceCheck: "application/json"
        }
    }

    /// The path of the call below its host.
    package var path: String {
        switch self {
        case .receipts: "/v1/attestationData"
        case .queryBits: "/v1/query_two_bits"
        case .updateBits: "/v1/update_two_bits"
        case .validateToken: "/v1/validate_device_token"
        }
    }
}

/// One call to Apple.
package struct AppleCall: Sendable {
    package var service: AppleService
    /// The environment whose host it goes to: Apple's for production, Apple's for development, or
    /// the operator's stand-in for keys of a test authority.
    package var environment: KeyEnvironment
    /// The team whose key signs the call's token; `nil` for the only one.
    package var teamID: String?
    package var body: [UInt8]
    /// The time from the hand-in to the reply, including the wait in the queue.
    package var timeout: Duration

    package init(
        service: AppleService,
        environment: KeyEnvironment,
        teamID: String? = nil,
        body: [UInt8],
        timeout: Duration
    ) {
        self.service = service
        self.environment = environment
        self.teamID = teamID
        self.body = body
        self.timeout = timeout
    }
}

extension AppleCall: OutboundCall {
    /// A query to one of Apple's environments.
    package struct Kind: Comparable, Hashable, Sendable {
        package let service: AppleService
        package let environment: KeyEnvironment

        package init(_ service: AppleService, _ environment: KeyEnvironment) {
            self.service = service
            self.environment = environment
        }

        package static func < (left: Kind, right: Kind) -> Bool {
            (left.service.rawValue, left.environment.rawValue)
                < (right.service.rawValue, right.environment.rawValue)
        }
    }

    package var host: AppleHost { AppleHost(service.family, environment) }
    package var kind: Kind { Kind(service, environment) }
    package var family: AppleService.Family { service.family }
}

/// Takes calls to Apple.
package protocol AppleCalling: Sendable {
    /// Sends a call when rate, breaker and queue allow it.
    ///
    /// `done` is called exactly once, within `call.timeout`, on a queue of the client and never on
    /// an event loop; it must not wait.
    func send(_ call: AppleCall, _ done: @escaping @Sendable (CallReply) -> Void)
}

/// A host that is called.
package struct AppleHost: Comparable, Hashable, Sendable {
    package let family: AppleService.Family
    package let environment: KeyEnvironment

    package init(_ family: AppleService.Family, _ environment: KeyEnvironment) {
        self.family = family
        self.environment = environment
    }

    /// All possible hosts, in the order of metrics.
    package static let all = AppleService.Family.allCases.flatMap { family in
        KeyEnvironment.allCases.map { AppleHost(family, $0) }
    }

    /// The order of metrics.
    package static func < (left: Self, right: Self) -> Bool {
        (all.firstIndex(of: left) ?? 0) < (all.firstIndex(of: right) ?? 0)
    }

    package var key: String {
        let suffix = environment == .production ? "" : "_\(environment.rawValue)"
        return family.rawValue.replacing("-", with: "_") + suffix
    }

    /// Apple's address of it; `nil` for keys of a test authority, which Apple does not know.
    ///
    /// Apple, "Assessing fraud risk" and "Accessing and modifying per-device data". Some articles
    /// swap the two hosts of DeviceCheck.
    package var address: String? {
        switch (family, environment) {
        case (.receipts, .production): "https://data.appattest.apple.com"
        case (.receipts, .development): "https://data-development.appattest.apple.com"
        case (.deviceCheck, .production): "https://api.devicecheck.apple.com"
        case (.deviceCheck, .development): "https://api.development.devicecheck.apple.com"
        case (_, .test): nil
        }
    }
}

/// The teams that have a key for Apple's services.
package struct AppleTeams: Hashable, Sendable {
    private let ids: Set<String>

    package init(_ credentials: [AppleCredential]) { ids = Set(credentials.map(\.teamID)) }

    /// The team that has a key; `nil` where several have one, or none.
    package var only: String? { ids.count == 1 ? ids.first : nil }

    /// The team whose key signs calls about an app; `nil` where no team has a key.
    ///
    /// The call names the team even if it is the only one: another one may be added before the call
    /// is made. The prefix of an old App ID may not be a team's, so it is used only among several
    /// teams.
    package func team(of appID: String) -> String? {
        guard ids.count > 1 else { return ids.first }
        return String(appID.prefix { $0 != "." })
    }
}
