package import HTTPWire
package import OutboundCalls
package import Proxy
import RequestBinding
package import Rules
package import Services
package import Tokens
package import Verification

/// All settings of the gateway: complete and consistent.
///
/// Only ``ConfigurationLoader`` makes it, from files without an error.
package struct GatewayConfiguration: Sendable {
    /// `listen`, mandatory: at least one, no address twice.
    package let listeners: [ListenSettings]
    /// `admin`: the listeners for operators, in the order of the file. Default none.
    package let admin: [AdminListener]
    /// `event_loops`: default `auto`.
    package let loops: EventLoopCount
    /// `origins`, mandatory, in the order of the file; rules refer to them by index.
    package let origins: [UpstreamSettings]
    /// `apps`: mandatory when a rule verifies.
    package let apps: [AppPolicy]
    /// `store`: mandatory when there is an app.
    package let store: StorePlace
    /// `store.must_exist`: whether a start without the database's file is refused. Default false:
    /// it creates a new store.
    package let storeMustExist: Bool
    /// `store.expire_unused`: keys that were not used for this time are deleted. Default off.
    package let expireUnused: KeyAge?
    package let challenges: ChallengeSettings
    package let sessions: SessionTable.Limits
    package let enrolment: EnrolmentAdmission.Settings
    package let apple: AppleSettings
    /// `verdict`: how the verdicts for origins are signed; `nil`, the default, for not at all.
    package let verdict: VerdictSettings?
    package let google: GoogleSettings
    /// `trusted_proxies`: the peers that may name the client's address. Default: none.
    package let trustedProxies: [IPNetwork]
    /// `client_address`: the field those proxies write. Default x-forwarded-for.
    package let addressSource: ClientAddress.Source
    /// `traces`: whether a trace begins here. Default carry.
    package let traces: TraceRule
    package let timeouts: Timeouts
    package let limits: ProxyLimits
    package let log: LogSettings
    package let process: ProcessSettings
    package let hooks: HookSettings
    /// `proofs`, in the order of the file; rules refer to them by index. Default: none.
    package let proofs: [ProofSettings]
    /// `endpoints`: the path under which the gateway answers itself. Default
    /// /.well-known/app-attest.
    package let endpointsPath: String
    /// `plan`: whether apps get the plan below the endpoints' path. Default off: any client could
    /// read the hosts, paths and names of all rules.
    package let servesPlan: Bool
    /// `probes`: their paths on the public listeners. Default: off.
    package let probes: ProbePaths
    /// `spill_folder`: the folder for held content that is too large for memory. Default: the first
    /// of /tmp, /var/tmp and /dev/shm that is on another file system than the store, and not on a
    /// read-only one, a disk rather than memory; /tmp when none is.
    package let spillFolder: String
    /// `rules` and `default`.
    package let fileRules: RuleSet
    /// SHA-256 of the rules as they are written, without comments and layout.
    package internal(set) var rulesDigest: [UInt8] = []
    /// The rules with the orders of operators; `nil` without orders.
    var orderedRules: RuleSet? = nil
    /// The rules as they are served.
    package var rules: RuleSet { orderedRules ?? fileRules }
    /// The place of each rule, by its number; the default last.
    package let rulePlaces: [Problem.Place]
    /// The places of the settings that are checked again when they are used, by key path.
    let places: [String: Problem.Place]

    /// The place of a setting, such as `listen[0].tls.key` or `origins.shop.servers[1]`; the file's
    /// start for one that is not in the file.
    package func place(of keyPath: String) -> Problem.Place {
        places[keyPath] ?? places[""] ?? Problem.Place(file: "", line: 1)
    }

    /// The plan for apps, of the rules as they are served; `nil` where the plan is not served.
    package var servedPlan: [UInt8]? {
        servesPlan ? ClientPlan(rules, endpoints: endpointsPath).json : nil
    }

    /// The rule of requests to open a session; `nil` where no rule accepts sessions.
    package var sessionOpening: Rule? {
        // An order may switch such a rule off and on again, and sessions outlive that.
        guard fileRules.rules.contains(where: { $0.accept.takesSessions }) else { return nil }
        return .openingSessions(apps: apps.map(\.id))
    }

    package func ordered(by orders: RolloutOrders) -> GatewayConfiguration {
        var ordered = self
        ordered.orderedRules = orders.rules(fileRules)
        return ordered
    }

    /// The origin of a rule; `nil` for a rule that denies.
    package func origin(of rule: Rule) -> UpstreamSettings? {
        rule.origin.map { origins[$0.rawValue] }
    }

    /// The fields that rules sign, or in which they look for a token or for a proof under another
    /// name; in lower case, sorted.
    package var fieldsOfRules: [String] {
        var names: Set<String> = []
        for rule in rules.rules where rule.mode.verifies {
            if case .lines(_, let headers) = rule.signing { names.formUnion(headers) }
            var others = rule.fields == .standard ? [] : rule.fields.all
            for place in rule.tokens.map(\.place) {
                switch place {
                case .field(let name): others.append(name)
                case .cookie: others.append(Array("cookie".utf8))
                }
            }
            names.formUnion(others.map { String(decoding: $0, as: UTF8.self) })
        }
        return names.sorted()
    }

    /// The listeners where other proxies ask for decisions, and send no content.
    var blindListeners: [String] {
        listeners.filter { $0.decides?.content == DecisionQuestion.Content.none }
            .map(\.address.text)
    }
}

extension RuleSet {
    /// Whether content may be held that is too large for memory.
    package var spills: Bool {
        rules.contains { rule in
            if case .held(let limit, let memory) = rule.body { memory < limit } else { false }
        }
    }
}

extension GatewayConfiguration {
    /// Where held content goes that is too large for memory, and what it counts as; `nil` where
    /// there is none.
    package var spillText: String? {
        guard rules.spills else { return nil }
        let bound =
            limits.filesAreMemory
            ? "which is in memory: it counts as limits.held_memory, "
                + ByteCount(limits.heldMemoryMax).text
            : "at most limits.held_disk, \(ByteCount(limits.heldDiskMax).text)"
        return "content beyond a rule's memory goes to \(spillFolder), \(bound)"
    }
}

/// How challenges are issued.
package struct ChallengeSettings: Hashable, Declared {
    package var enrolmentLifetime: Duration = .seconds(3600)
    package var assertionLifetime: Duration = .seconds(300)
    /// Each takes at most 170 bytes, and a few bits where most issued challenges are spent.
    package var capacity = 1 << 20

    /// The lifetime of the longest-lived challenge, in seconds.
    package var lifetimeMax: Int64 { max(enrolmentLifetime, assertionLifetime).components.seconds }

    package init() {}

    static let keys = Keys<Self> {
        Key("enrolment_ttl", \.enrolmentLifetime, .time(.seconds(10) ... .days(30)))
            .means("How long a challenge for an enrolment is good.")
            .because("long, since Apple's servers may be slow or throttle")
        Key("assertion_ttl", \.assertionLifetime, .time(.seconds(1) ... .days(1)))
            .means("How long a challenge for a request is good.")
        Key("capacity", \.capacity, .count(1024...1 << 24))
            .means("Spent challenges of one purpose that are remembered at least.")
    }
}

extension SessionTable.Limits: Declared {
    static let keys = Keys<Self> {
        Key("lifetime", \.lifetime, .seconds(.seconds(1) ... .days(1)))
            .means("How long a session is good.")
            .because("short, since only a revocation of its key ends it early")
        Key("window", \.window, .count(64...4096))
            .means("Requests of one session that may be in flight.")
        Key("limit", \.sessionsMax, .count(1...1_000_000))
            .means("Open sessions, of some 600 bytes each. A further one ends the oldest.")
    }
}

extension EnrolmentAdmission.Settings: Declared {
    static let keys = Keys<Self> {
        Key("rate", \.perSecond, .perSecond(of: "challenges a second", max: 10_000))
            .means("Enrolment challenges, for all apps together; then 429.")
            .because("Apple asks for less than 100 attestKey calls a second of an app")
        Key("burst", \.burst, .count(1...1_000_000))
            .means("Enrolment challenges at once, after a pause.")
        Key("per_attester", \.perAttester, .orOff(unit: "/d"))
            .means("Android keys that one certificate's public key may attest; then 429.")
            .because("a leaked key of a factory signs any description")
        Key("percent", partOf: \.ramp)
            .means("The share of the keys that may enrol. Without it, all.")
        Key("from").means("When the share begins to grow.")
        Key("to").means("When the share has grown.")
        Key("start").means("The share at first.")
        Key("end").means("The share at last.")
    }.checked { reader, settings in
        guard MappingReader.scheduleKeys.contains(where: reader.has),
            let schedule = reader.schedule()
        else { return }
        settings.ramp = schedule
    }
}

/// The rights that the process gives up before it serves. Read only at the start.
package struct ProcessSettings: Hashable, Declared {
    package var user: String?
    package var group: String?
    package var allowsCoreDumps = false

    package init() {}

    static let keys = Keys<Self> {
        Key("user", orNone: \.user, .text("a user's name", name))
            .means("The user of the process after root has started it and bound its addresses.")
        Key("group", orNone: \.group, .text("a group's name", name))
            .means("Its group. Without it the user's own, with the further ones.")
        Key("core_dumps", \.allowsCoreDumps, .onOff)
            .means("Whether its memory may be dumped, or read by another process of the user.")
            .because("the memory has all secrets")
    }.checked { reader, _ in
        guard reader.has("group"), !reader.has("user") else { return }
        reader.error("group", found: "it without user", use: "user beside it")
    }

    /// The allowed names in the databases of users and groups: no colon, no white space.
    private static func name(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ":") }
        return isPlain && (1...32).contains(text.utf8.count) ? text : nil
    }
}

/// Commands that the gateway runs after certain events: `hooks`.
///
/// They are in the main file and in no rule, so that authors of rules can't run programs.
package struct HookSettings: Hashable, Declared {
    package static let wordsMax = 16
    private static let bytesMax = 4_096

    /// The program and its arguments; empty for none.
    package var onGuard: [String] = []
    package var timeout = Duration.seconds(10)

    package init() {}

    static let keys = Keys<Self> {
        Key("guard", \.onGuard, ValueForm { words($0, $1) })
            .means("A program and its arguments that run when a guard has fallen.")
        Key("timeout", \.timeout, .time(.seconds(1) ... .seconds(300)))
            .means("A command that takes longer is killed.")
    }

    /// A program and its arguments; `nil`, with a problem, when they can't be read.
    private static func words(_ reader: MappingReader, _ key: String) -> Located<[String]>? {
        let use = "an absolute path, then arguments, \(wordsMax) texts at most"
        guard let nodes = reader.list(key, of: "texts: \(use)") else { return nil }
        var words: [String] = []
        for (place, entry) in nodes.enumerated() {
            let word = reader.value(of: entry.node, entry.keyPath, use: use) { text in
                let isFit =
                    text.utf8.count <= bytesMax && !text.utf8.contains(0) && place < wordsMax
                    && (place > 0 || text.hasPrefix("/"))
                return isFit ? text : nil
            }
            guard let word else { return nil }
            words.append(word.value)
        }
        return Located(value: words, place: reader.place(of: key), keyPath: reader.path(key))
    }
}
