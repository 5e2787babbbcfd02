package import ConfigurationReading
package import Cryptography
import Rules
import SoftwareAuthenticator
package import Verification

/// What the lanes get at the start; nothing of it changes in a run.
package struct LoadPlan: Sendable {
    let server: ServerPlace
    let host: String
    let rule: Rule
    let method: String
    let target: String
    let template: RequestTemplate
    let challengeLifetime: UInt64
    let challengesTarget: String
    /// The request that opens a session; of use where requests are signed with sessions.
    let openingTemplate: RequestTemplate
    let fleet: Fleet
    let device: SoftwareDevice
    let options: Options

    /// What the user says.
    package struct Options: Sendable {
        package var pacing: Pacing
        package var mix = Mix.allGood
        package var connections = 64
        package var lanes = 1
        package var isSignedBefore = false
        /// By what good requests prove themselves.
        package var proof = ProofKind.assertion
        /// Requests of one device under way together, under a window.
        package var underWayMax: Int?
        package var connectTimeout: UInt64 = 3_000
        package var responseTimeout: UInt64 = 30_000

        package init(pacing: Pacing) { self.pacing = pacing }
    }

    /// What is sent.
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
    }

    /// Finds the rule and makes the template.
    ///
    /// - Throws: that no rule judges the request, that nothing is verified, that the rule takes no
    ///   sessions, that the devices are too few.
    package init(
        _ request: Request,
        _ configuration: GatewayConfiguration,
        server: ServerPlace,
        fleet: Fleet,
        options: Options,
        now: UnixTime
    ) throws(LoadError) {
        let sketch = RequestSketch(
            method: request.method,
            url: request.url.text,
            headers: request.fields
        )
        rule = try configuration.judgingRule(for: sketch, keysOf: fleet.appID)
        if case .session = options.proof { try Self.checkSessions(rule, options) }
        let demand = RequestDemand(rule, underWayMax: options.underWayMax)
        template = RequestTemplate(
            demand,
            method: request.method,
            target: request.url.target,
            host: request.url.authority,
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
            host: request.url.authority,
            fields: [],
            content: .none
        )
        method = request.method
        target = request.url.target
        host = request.url.authority
        self.server = server
        self.fleet = fleet
        device = fleet.device(at: now)
        var options = options
        options.lanes = min(options.lanes, options.connections, fleet.count)
        self.options = options
        let least = needsStaleDevices ? 2 * options.lanes : options.lanes
        guard fleet.count >= least else {
            throw LoadError("\(least) devices at least are needed for this; prepare more")
        }
        guard UInt64(fleet.nextCounter) + UInt64(Fleet.counterReserve) * 2 < UInt64(UInt32.max)
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

    var demand: RequestDemand { template.demand }
    /// Whether challenges are spent in the run.
    var needsChallenges: Bool { demand.challenge != nil || options.proof == .session }
    /// Stale challenges are signed by devices that do nothing else, so that their counters stay
    /// above what was admitted.
    var needsStaleDevices: Bool {
        demand.challenge != nil && options.mix.share(of: .stale) > 0
    }

    /// How many devices of the fleet a lane has.
    func deviceCount(lane: Int) -> Int {
        (fleet.count - lane + options.lanes - 1) / options.lanes
    }

    /// How many of them, the last ones, sign stale challenges and nothing else.
    func staleDeviceCount(lane: Int) -> Int {
        needsStaleDevices ? min(16, deviceCount(lane: lane) / 2) : 0
    }

    /// The number in the fleet of a lane's device.
    func fleetIndex(_ device: Int, lane: Int) -> Int { device * options.lanes + lane }

    /// How many connections a lane has.
    func connectionCount(lane: Int) -> Int {
        (options.connections - lane + options.lanes - 1) / options.lanes
    }

    /// What is to be said before the run, for people.
    package var warnings: [String] {
        var found: [String] = []
        if rule.mode == .observe {
            found.append("rule \(rule.id) observes: what should be refused will be admitted")
        } else if rule.rollout.schedule != .fixed(.whole) {
            found.append(
                "rule \(rule.id) is enforced for \(rule.rollout.text): others will be admitted"
            )
        }
        return found
    }
}
