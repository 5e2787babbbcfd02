package import KeyStore

/// What can be asked of Apple. The raw value is a label of metrics.
package enum AppleService: String, CaseIterable, Hashable, Sendable {
    /// A newer receipt for an older one (Apple, "Assessing fraud risk").
    case receipts
    /// The two bits of a device (Apple, "Accessing and modifying per-device data").
    case queryBits = "query-bits"
    /// Both bits written.
    case updateBits = "update-bits"
    /// Whether a device token is genuine.
    case validateToken = "validate-token"

    /// The service of Apple that takes the call. Each has hosts of its own, and fails by itself.
    package enum Family: String, CaseIterable, Hashable, Sendable {
        case receipts
        case deviceCheck = "device-check"
    }

    /// Which of Apple's services takes it.
    package var family: Family {
        switch self {
        case .receipts: .receipts
        case .queryBits, .updateBits, .validateToken: .deviceCheck
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
    /// Whose host it goes to: Apple's for production, Apple's for development, or the operator's
    /// stand-in for keys of a test authority.
    package var environment: KeyEnvironment
    /// The team whose key signs the call's token; `nil` for the only one.
    package var teamID: String?
    package var body: [UInt8]
    package var contentType: String
    /// From the hand-in to the reply, waiting in the queue included.
    package var timeout: Duration

    package init(
        service: AppleService,
        environment: KeyEnvironment,
        teamID: String? = nil,
        body: [UInt8],
        contentType: String,
        timeout: Duration
    ) {
        self.service = service
        self.environment = environment
        self.teamID = teamID
        self.body = body
        self.contentType = contentType
        self.timeout = timeout
    }
}

/// Where calls to Apple are handed in.
package protocol AppleCalling: Sendable {
    /// Sends a call when rate, breaker and queue allow it.
    ///
    /// `done` is called exactly once, within `call.timeout`, on a queue of the client and never on
    /// an event loop; it must not wait.
    func send(_ call: AppleCall, _ done: @escaping @Sendable (AppleReply) -> Void)
}

/// One of the hosts that are called.
package struct AppleHost: Hashable, Sendable {
    package let family: AppleService.Family
    package let environment: KeyEnvironment

    package init(_ family: AppleService.Family, _ environment: KeyEnvironment) {
        self.family = family
        self.environment = environment
    }

    /// All there can be, in the order of metrics.
    package static let all = AppleService.Family.allCases.flatMap { family in
        KeyEnvironment.allCases.map { AppleHost(family, $0) }
    }

    /// Its key in the configuration.
    package var key: String {
        let suffix = environment == .production ? "" : "_\(environment.rawValue)"
        return family.rawValue.replacing("-", with: "_") + suffix
    }

    /// Where Apple has it; `nil` for keys of a test authority, which Apple does not know.
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

/// What became of a call.
package enum AppleReply: Hashable, Sendable {
    /// Apple answered. What the status means is the asker's to say.
    ///
    /// - retryAfter: seconds, where the answer names them.
    case answered(status: Int, retryAfter: Int?, body: [UInt8])
    /// Nothing left this machine, so the call can be made again without harm.
    case unsent(AppleFault)
    /// It was begun, and whether Apple took it is unknown.
    case failed(AppleFault)
}

/// The teams that have a key for Apple's services.
package struct AppleTeams: Hashable, Sendable {
    private let ids: Set<String>

    package init(_ credentials: [AppleCredential]) { ids = Set(credentials.map(\.teamID)) }

    /// The team that has a key; `nil` where several have one, or none.
    package var only: String? { ids.count == 1 ? ids.first : nil }

    /// The team whose key signs calls about an app; `nil` where no team has a key.
    ///
    /// It is named even if it is the only one: another one may have come before the call is made.
    /// The prefix of an old App ID may be none of a team, so it is looked at among several alone.
    package func team(of appID: String) -> String? {
        guard ids.count > 1 else { return ids.first }
        return String(appID.prefix { $0 != "." })
    }
}

/// Why a call has no answer. The raw value is a label of metrics and a word of the log.
package enum AppleFault: String, CaseIterable, Hashable, Sendable, Error {
    // Nothing was sent.

    /// No key is configured, none of the call's team, or no team was named where there are several.
    case noCredential = "no-credential"
    /// The call is for a key of a test authority, and no host is configured for those.
    case noHost = "no-host"
    /// As many calls wait for this host as may wait.
    case queueFull = "queue-full"
    /// The call's time ended while it waited for its turn.
    case queueTimeout = "queue-timeout"
    /// The host failed so often that it is left alone for a while.
    case breakerOpen = "breaker-open"
    /// The gateway is ending.
    case stopping

    // It was begun.

    /// No name, no connection.
    case unreachable
    /// The handshake failed: most often a certificate that is not trusted.
    case tls
    /// No whole answer in time.
    case timeout
    /// The connection ended before the whole answer was there.
    case broken
    /// The answer is longer than any that Apple gives.
    case answerTooLong = "answer-too-long"
    /// The answer is not HTTP.
    case garbled
}
