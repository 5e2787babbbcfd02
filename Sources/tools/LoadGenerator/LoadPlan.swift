package import ConfigurationReading
package import EventLoops
import Rules
package import Signatures
import SoftwareAuthenticator
package import Verification

/// The plan of a run, which no event loop changes.
package struct LoadPlan: Sendable {
    let server: ServerPlace
    let host: String
    let rule: Rule
    let method: String
    let target: String
    let template: RequestTemplate
    let challengeLifetime: UInt64
    let challengesTarget: String
    /// The request that opens a session, for requests that are signed with sessions.
    let openingTemplate: RequestTemplate
    let fleet: DeviceFleet
    let devices: FleetDevices
    /// Makes the tokens of phones; `nil` where they show none.
    let mint: TokenMint?
    let options: Options

    /// The user's choices.
    package struct Options: Sendable {
        package var pacing: Pacing
        package var mix = Mix.allGood
        package var connections = 64
        package var loops = 1
        package var isSignedBefore = false
        /// How good requests prove themselves.
        package var proof = ProofKind.assertion
        /// Phones show a token of Play Integrity beside their signature.
        package var showsTokens = false
        /// The most requests of one device under way together, under a window.
        package var underWayMax: Int?
        package var connectTimeout: UInt64 = 3_000
        package var responseTimeout: UInt64 = 30_000

        package init(pacing: Pacing) { self.pacing = pacing }
    }

    /// The request to send.
    package struct Request: Sendable {
        package var method: String
        package var url: LoadURL
        package var fields: [(name: String, value: String)]
        package var content: ContentPlan

        package init(
            method: String,
            url: LoadURL,
            fields: [(name: String, value: String)],
            content: ContentPlan
        ) {
            self.method = method
            self.url = url
            self.fields = fields
            self.content = content
        }

        /// The value of the Host field: the user's, or else the URL's.
        var host: String {
            fields.first { $0.name.lowercased() == "host" }?.value ?? url.authority
        }
    }

    /// Finds the rule and makes the template.
    ///
    /// - Throws: when no rule judges the request, when nothing is verified, when the rule takes no
    ///   sessions, or when the devices are too few.
    package init(
        _ request: Request,
        _ configuration: GatewayConfiguration,
        server: ServerPlace,
        fleet: DeviceFleet,
        options: Options,
        now: UnixTime
    ) throws(LoadError) {
        let sketch = RequestSketch(
            method: request.method,
            url: request.url.text,
            headers: request.fields
        )
        rule = try configuration.judgingRule(for: sketch, keysOf: fleet.appIDs)
        if case .session = options.proof { try Self.checkSessions(rule, options) }
        mint = try Self.mint(rule, fleet, configuration, options, now)
        var demand = RequestDemand(rule, underWayMax: options.underWayMax)
        demand.tokenField = mint?.field ?? []
        template = RequestTemplate(
            demand,
            method: request.method,
            target: request.url.target,
            host: request.host,
            fields: request.fields,
            content: request.content
        )
        let seconds = configuration.challenges.assertionLifetime.components.seconds
        challengeLifetime = UInt64(clamping: seconds) * 1_000_000_000
        challengesTarget = configuration.endpointsPath + "/challenges"
        openingTemplate = RequestTemplate(
            RequestDemand(.openingSessions(apps: [])),
            method: "POST",
            target: configuration.endpointsPath + "/sessions",
            host: request.host,
            fields: [],
            content: .none
        )
        method = request.method
        target = request.url.target
        host = request.host
        self.server = server
        self.fleet = fleet
        devices = fleet.devices(at: now)
        var options = options
        options.loops = min(options.loops, options.connections, fleet.count)
        self.options = options
        let least = needsStaleDevices ? 2 * options.loops : options.loops
        guard fleet.count >= least else {
            throw LoadError("\(least) devices at least are needed for this; prepare more")
        }
        guard
            UInt64(fleet.nextCounter) + UInt64(DeviceFleet.counterReserve) * 2 < UInt64(UInt32.max)
        else { throw LoadError("the fleet's counters are used up; prepare another") }
    }

    private static func checkSessions(_ rule: Rule, _ options: Options) throws(LoadError) {
        guard rule.accept.takesSessions else {
            throw LoadError(
                "rule \(rule.id) takes no sessions: give it accept: [assertion, session]"
            )
        }
        guard !options.isSignedBefore else {
            throw LoadError("--sessions with --sign-before: sessions are opened in the run")
        }
        guard options.mix.share(of: .stale) == 0 else {
            throw LoadError("--sessions with stale requests: use another --mix")
        }
    }

    private static func mint(
        _ rule: Rule,
        _ fleet: DeviceFleet,
        _ configuration: GatewayConfiguration,
        _ options: Options,
        _ now: UnixTime
    ) throws(LoadError) -> TokenMint? {
        guard options.proof == .assertion || !options.showsTokens else {
            throw LoadError("--tokens with --sessions: phones show them beside assertions alone")
        }
        return try TokenMint(
            fleet,
            if: options.showsTokens,
            for: rule.integrity,
            of: "rule \(rule.id)",
            configuration,
            now: now
        )
    }

    var demand: RequestDemand { template.demand }
    /// Whether the run uses up challenges.
    var needsChallenges: Bool { demand.challenge != nil || options.proof == .session }
    /// Whether some devices only sign stale challenges, so that their counters stay above the
    /// admitted ones.
    var needsStaleDevices: Bool { demand.challenge != nil && options.mix.share(of: .stale) > 0 }

    func deviceCount(loop: Int) -> Int { (fleet.count - loop + options.loops - 1) / options.loops }

    /// How many of them, the last ones, only sign stale challenges.
    func staleDeviceCount(loop: Int) -> Int {
        needsStaleDevices ? min(16, deviceCount(loop: loop) / 2) : 0
    }

    /// The number in the fleet of an event loop's device.
    func fleetIndex(_ device: Int, loop: Int) -> Int { device * options.loops + loop }

    func connectionCount(loop: Int) -> Int {
        (options.connections - loop + options.loops - 1) / options.loops
    }

    /// Warnings before the run, for people.
    package var warnings: [String] {
        var found: [String] = []
        if mint == nil, fleet.platforms.android > 0, rule.integrity?.action == .refuse {
            found.append(
                "rule \(rule.id) asks phones for a token of Play Integrity: give --tokens, or "
                    + "they are refused"
            )
        }
        if rule.mode == .observe {
            found.append(
                "rule \(rule.id) observes: requests with a fault are expected to be admitted"
            )
        } else if EnforcementForecast(rule, by: options.proof).isPartial {
            found.append(
                "rule \(rule.id) is enforced for \(rule.rollout.text): requests with a fault of "
                    + "other keys are expected to be admitted; what no key has signed may be "
                    + "refused or admitted, since the gateway counts it by address"
            )
        }
        return found
    }
}

extension LoadPlan {
    /// `open loop, 5,000 requests/s for 60 s after 5 s of warm-up; 64 connections, 1 loop`.
    var loadText: String {
        let pacing = options.pacing
        var text: String
        if let rate = pacing.rate {
            text = "open loop, \(Figures.fixed(rate, rate < 10 ? 1 : 0)) requests/s"
        } else {
            text = "closed loop"
        }
        if let duration = pacing.duration {
            text += " for \(Figures.fixed(Double(duration) / 1e9, 0)) s"
        }
        if let count = pacing.countLimit { text += ", at most \(Figures.count(count)) requests" }
        if pacing.warmUp > 0 {
            text += " after \(Figures.fixed(Double(pacing.warmUp) / 1e9, 0)) s of warm-up"
        }
        let loops = options.loops == 1 ? "1 event loop" : "\(options.loops) event loops"
        text += "; \(options.connections) connections, \(loops)"
        if mint != nil { text += "; phones show tokens" }
        return options.proof == .session ? text + "; signed with sessions" : text
    }
}

/// A length of time in the form of the command line.
package struct LoadTime: Equatable, Sendable {
    package let nanoseconds: UInt64

    private static let units: [(name: String, factor: UInt64)] = [
        ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000),
    ]

    /// Reads `500ms`, `10s`, `5m`, `1h`: a whole number and its unit, at most 1,000 hours.
    package init?(_ text: String) {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let unit = text.dropFirst(digits.count)
        guard let count = UInt64(digits), count <= 3_600_000_000,
            let factor = Self.units.first(where: { $0.name == unit })?.factor
        else { return nil }
        let (product, overflow) = count.multipliedReportingOverflow(by: factor)
        guard !overflow, product <= 3_600_000_000_000_000 else { return nil }
        nanoseconds = product
    }
}

/// The URL of the requests.
package struct LoadURL: Equatable, Sendable {
    package let isSecure: Bool
    /// Without the brackets of an IPv6 address.
    package let host: String
    package let port: UInt16
    /// Path and query, in the form of the request line.
    package let target: String
    /// Host and port, in the form of the Host field.
    package let authority: String

    /// Reads `http://127.0.0.1:8080/v1/orders?dry=1`; `nil` for anything else than http and https
    /// with a host, for user information, and for a fragment.
    package init?(_ text: String) {
        guard let scheme = ["http://", "https://"].first(where: text.hasPrefix) else { return nil }
        isSecure = scheme == "https://"
        let rest = text.dropFirst(scheme.count)
        let end = rest.firstIndex { "/?".contains($0) } ?? rest.endIndex
        let authority = rest[..<end]
        let target = rest[end...]
        guard !authority.isEmpty, !authority.contains("@"), !text.contains("#"),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        self.authority = String(authority)
        self.target = (target.hasPrefix("/") ? "" : "/") + target
        var name = authority
        var port = isSecure ? UInt16(443) : 80
        if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
            guard let given = UInt16(authority[authority.index(after: colon)...]), given > 0 else {
                return nil
            }
            port = given
            name = authority[..<colon]
        }
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        guard !name.isEmpty else { return nil }
        host = String(name)
        self.port = port
    }

    /// The whole.
    package var text: String { "\(isSecure ? "https" : "http")://\(authority)\(target)" }
}

/// The gateway's address, and the certificates to trust.
package struct ServerPlace: Sendable {
    let address: SocketAddress
    private let tls: TLSContext?
    private let host: String

    /// - `tls`: `nil` for a plain connection.
    package init(_ address: SocketAddress, tls: TLSContext?, host: String) {
        self.address = address
        self.tls = tls
        self.host = host
    }

    /// The parts that a new connection needs besides its socket.
    func session() throws(TLSFailure) -> (tls: TLSSession?, isSecure: Bool) {
        guard let tls else { return (nil, false) }
        return (try TLSSession(connecting: tls, to: host), true)
    }
}

extension ServerPlace {
    /// How long one attempt to connect may take, and the time from its end to the next one.
    private static let attemptMilliseconds: Int32 = 1_000
    private static let pauseMilliseconds: Int32 = 50

    /// Waits until the gateway takes connections, since it may be starting just now. Blocks.
    ///
    /// - Parameters:
    ///   - time: how long; when it is over, the run itself says that no gateway is there.
    ///   - begins: called once, when the first attempt has failed.
    package func awaitGateway(within time: LoadTime, begins: () -> Void) {
        let deadline = ContinuousClock.now + .nanoseconds(time.nanoseconds)
        guard !address.takesConnections(within: Self.attemptMilliseconds) else { return }
        begins()
        repeat {
            SocketAddress.pause(milliseconds: Self.pauseMilliseconds)
        } while !address.takesConnections(within: Self.attemptMilliseconds) && .now < deadline
    }
}
