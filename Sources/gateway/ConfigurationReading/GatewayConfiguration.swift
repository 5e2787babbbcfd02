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
    /// `lanes`: default `auto`.
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
package struct ChallengeSettings: Hashable, Sendable {
    /// `enrolment_ttl`: default 1h, 10s…30d. Long, since Apple's servers may be slow or throttle.
    package var enrolmentLifetime: Duration = .seconds(3600)
    /// `assertion_ttl`: default 5m, 1s…1d.
    package var assertionLifetime: Duration = .seconds(300)
    /// `capacity`: the number of spent challenges of one purpose that are remembered at least; each
    /// takes at most 170 bytes, and a few bits where most issued challenges are spent. Default
    /// 1048576, 1024…16777216.
    package var capacity = 1 << 20

    /// The lifetime of the longest-lived challenge, in seconds.
    package var lifetimeMax: Int64 { max(enrolmentLifetime, assertionLifetime).components.seconds }

    package init() {}

    private static let rows: [SettingRow<Self>] = [
        SettingRow(
            "enrolment_ttl",
            .time(\.enrolmentLifetime, .seconds(10) ... .seconds(30 * 86_400))
        ),
        SettingRow("assertion_ttl", .time(\.assertionLifetime, .seconds(1) ... .seconds(86_400))),
        SettingRow("capacity", .count(\.capacity, 1024...1 << 24)),
    ]

    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        SettingRow.read(Self.rows, of: node, "challenges", into: &self, log: log)
    }
}

extension SessionTable.Limits {
    /// Reads `sessions`.
    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let keys = ["lifetime", "window", "limit"]
        guard let node, let reader = MappingReader(node, "sessions", keys: keys, log: log) else {
            return
        }
        if let time = reader.duration("lifetime", in: .seconds(1)...Duration.seconds(86_400)) {
            lifetime = time.value.components.seconds
        }
        if let number = reader.integer("window", in: 64...4096) { window = number.value }
        if let number = reader.integer("limit", in: 1...1_000_000) { sessionsMax = number.value }
    }
}

extension EnrolmentAdmission.Settings {
    /// Reads `enrolment`.
    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let share = MappingReader.scheduleKeys
        let keys = ["rate", "burst", "per_attester"] + share
        guard let node, let reader = MappingReader(node, "enrolment", keys: keys, log: log) else {
            return
        }
        let rate = reader.rate("rate", of: "challenges a second", max: 10_000)
        if let rate { perSecond = rate.value }
        if let number = reader.integer("burst", in: 1...1_000_000) { burst = number.value }
        if let number = reader.countOrOff("per_attester", unit: "/d") { perAttester = number.value }
        if share.contains(where: reader.has), let schedule = reader.schedule() { ramp = schedule }
    }
}

/// The rights that the process gives up before it serves. Read only at the start.
package struct ProcessSettings: Hashable, Sendable {
    /// `user`: the user of the process after root has started it, bound its addresses and read its
    /// keys. `nil`: the user that has started it.
    package var user: String?
    /// `group`: default the user's own, with its further groups.
    package var group: String?
    /// `core_dumps`: whether the memory, with all its secrets, may be written into a core file, or
    /// read by another process of the same user. Default off.
    package var allowsCoreDumps = false

    package init() {}

    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let keys = ["user", "group", "core_dumps"]
        guard let node, let reader = MappingReader(node, "process", keys: keys, log: log) else {
            return
        }
        user = reader.value("user", use: "a user's name", Self.name)?.value
        group = reader.value("group", use: "a group's name", Self.name)?.value
        if reader.has("group"), !reader.has("user") {
            reader.error("group", found: "it without user", use: "user beside it")
        }
        allowsCoreDumps = reader.word("core_dumps", OnOff.self)?.value == .on
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
package struct HookSettings: Hashable, Sendable {
    package static let wordsMax = 16
    private static let bytesMax = 4_096

    /// `guard`: the program and its arguments; empty for none. It runs when a guard has fallen.
    package var onGuard: [String] = []
    /// `timeout`: default 10s, 1s…5m. A command that takes longer is killed.
    package var timeout = Duration.seconds(10)

    package init() {}

    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let keys = ["guard", "timeout"]
        guard let node, let reader = MappingReader(node, "hooks", keys: keys, log: log) else {
            return
        }
        if let time = reader.duration("timeout", in: .seconds(1)...Duration.seconds(300)) {
            timeout = time.value
        }
        onGuard = Self.words(reader, "guard")
    }

    /// A program and its arguments; empty, with a problem, when they can't be read.
    private static func words(_ reader: MappingReader, _ key: String) -> [String] {
        let use = "an absolute path, then arguments, \(wordsMax) texts at most"
        var words: [String] = []
        for (place, entry) in (reader.list(key, of: "texts: \(use)") ?? []).enumerated() {
            let word = reader.value(of: entry.node, entry.keyPath, use: use) { text in
                let isFit =
                    text.utf8.count <= bytesMax && !text.utf8.contains(0) && place < wordsMax
                    && (place > 0 || text.hasPrefix("/"))
                return isFit ? text : nil
            }
            guard let word else { return [] }
            words.append(word.value)
        }
        return words
    }
}
