import ConfigurationReading
import Rules
import Services
import SoftwareAuthenticator
package import Verification

/// The plan of a run, which no event loop changes.
package struct LoadPlan: Sendable {
    let server: ServerPlace
    let request: Request
    let rule: Rule
    let template: RequestTemplate
    /// The request that opens a session, for requests that are signed with sessions.
    let openingTemplate: RequestTemplate
    /// Nanoseconds.
    let challengeLifetime: UInt64
    let challengesTarget: String
    let fleet: DeviceFleet
    let devices: FleetDevices
    /// Makes the tokens of phones; `nil` where they show none.
    let mint: TokenMint?
    let options: Options
    /// The answers to expect where the rule enforces, in the order of `Sending.allCases`.
    let expectations: [Expectation]

    /// The user's choices.
    package struct Options: Sendable {
        package var pacing: Pacing
        package var mix = Mix.allGood
        package var connections = 64
        package var loops = 1
        package var isSignedBefore = false
        /// How good requests prove themselves.
        package var proof = ProofKind.assertion
        /// The most requests of one device under way together, under a window.
        package var underWayMax: Int?
        /// Milliseconds.
        package var responseTimeout: UInt64 = 30_000

        package init(pacing: Pacing) { self.pacing = pacing }
    }

    /// The request to send.
    package struct Request: Sendable {
        package var method: String
        package var url: LoadURL
        package var fields: [(name: String, value: String)] = []
        package var content = ContentPlan.none

        package init(method: String, url: LoadURL, fields: [(name: String, value: String)] = []) {
            self.method = method
            self.url = url
            self.fields = fields
        }

        /// The value of the Host field: the user's, or else the URL's.
        var host: String {
            fields.first { $0.name.lowercased() == "host" }?.value ?? url.authority
        }

        var sketch: RequestSketch {
            RequestSketch(method: method, url: url.text, headers: fields)
        }
    }

    /// The expected answer.
    struct Expectation: Sendable {
        /// `nil` for admission.
        var refusal: Refusal?
        var status: Int? { refusal.map { LocalOutcome.refused($0).row.status } }

        var text: String {
            guard let refusal, let status else { return "admitted" }
            return "\(status) \(refusal.rawValue)"
        }
    }

    /// Finds the rule and makes the template.
    ///
    /// - Throws: when no rule judges the request, when nothing is verified, when the rule takes no
    ///   sessions, or when the devices are too few.
    package init(
        _ request: Request,
        from pairing: FleetPairing,
        to server: ServerPlace,
        options: Options
    ) throws(LoadError) {
        (self.request, self.server, fleet) = (request, server, pairing.fleet)
        rule = try pairing.judgingRule(for: request.sketch)
        if options.proof == .session { try Self.checkSessions(of: rule, options, pairing) }
        mint = try TokenMint(pairing, for: rule.integrity, of: "rule \(rule.id)")
        var demand = RequestDemand(rule, underWayMax: options.underWayMax)
        demand.tokenField = mint?.field ?? []
        template = RequestTemplate(demand, of: request)
        let configuration = pairing.configuration
        var opening = Request(method: "POST", url: request.url, fields: [("Host", request.host)])
        opening.url.target = configuration.endpointsPath + "/sessions"
        openingTemplate = RequestTemplate(RequestDemand(.openingSessions(apps: [])), of: opening)
        let seconds = configuration.challenges.assertionLifetime.components.seconds
        challengeLifetime = UInt64(clamping: seconds) * 1_000_000_000
        challengesTarget = configuration.endpointsPath + "/challenges"
        devices = pairing.devices
        expectations = Sending.allCases.map {
            let declares = demand.declaresDigest
            return Expectation(
                refusal: $0.expected(hasDeclaredDigest: declares, by: options.proof)
            )
        }
        var options = options
        options.loops = min(options.loops, options.connections, fleet.count)
        self.options = options
        let least = needsStaleDevices ? 2 * options.loops : options.loops
        guard fleet.count >= least else {
            throw LoadError("\(least) devices at least are needed for this; prepare more")
        }
        guard fleet.nextCounter < .max - DeviceFleet.counterReserve * 2 else {
            throw LoadError("the fleet's counters are used up; prepare another")
        }
    }

    private static func checkSessions(
        of rule: Rule,
        _ options: Options,
        _ pairing: FleetPairing
    ) throws(LoadError) {
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
        guard !pairing.showsTokens else {
            throw LoadError("--tokens with --sessions: phones show them beside assertions alone")
        }
    }

    var demand: RequestDemand { template.demand }
    /// Whether the run uses up challenges.
    var needsChallenges: Bool { demand.challenge != nil || options.proof == .session }
    /// Whether some devices only sign stale challenges, so that their counters stay above the
    /// admitted ones.
    private var needsStaleDevices: Bool {
        demand.challenge != nil && options.mix.share(of: .stale) > 0
    }

    func expectation(of sending: Sending) -> Expectation { expectations[sending.rawValue] }

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

    /// `open loop, 5,000 requests/s for 60 s after 5 s of warm-up; 64 connections, 1 loop`.
    var loadText: String {
        let pacing = options.pacing
        let seconds = { (time: UInt64) in Figures.fixed(Double(time) / 1e9, 0) + " s" }
        var text = "closed loop"
        if let rate = pacing.rate {
            text = "open loop, \(Figures.fixed(rate, rate < 10 ? 1 : 0)) requests/s"
        } else if !pacing.stages.isEmpty {
            text = "open loop, stages \(pacing.stages.map(\.text).joined(separator: ", "))"
        }
        if pacing.stages.isEmpty, let duration = pacing.duration {
            text += " for \(seconds(duration))"
        }
        if let count = pacing.countLimit { text += ", at most \(Figures.count(count)) requests" }
        if pacing.warmUp > 0 { text += " after \(seconds(pacing.warmUp)) of warm-up" }
        let loops = options.loops == 1 ? "1 event loop" : "\(options.loops) event loops"
        text += "; \(options.connections) connections"
        if case .http2(let streams) = server.version {
            text += " of HTTP/2 with \(streams == 1 ? "1 stream" : "\(streams) streams") each"
        }
        text += ", \(loops)"
        if mint != nil { text += "; phones show tokens" }
        return options.proof == .session ? text + "; signed with sessions" : text
    }
}
