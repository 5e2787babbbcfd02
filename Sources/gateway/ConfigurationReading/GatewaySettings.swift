package import HTTPWire
package import Parties
package import Proxy
package import Rules
package import Services
package import Tokens
package import Verification

/// What a configuration says beside its rules. Each key of the main file is declared here.
package struct GatewaySettings: Sendable, Declared {
    /// At least one, no address twice.
    package internal(set) var listeners: [ListenSettings] = []
    /// The listeners for operators, in the order of the file.
    package internal(set) var admin: [AdminListener] = []
    package var loops = EventLoopCount.perCore
    /// In the order of the file; rules refer to them by index.
    package internal(set) var origins: [UpstreamSettings] = []
    package internal(set) var apps: [AppPolicy] = []
    /// The same as the file states them.
    var statedApps: [AppSettings] = []
    package internal(set) var keeping = StoreSettings()
    package var challenges = ChallengeSettings()
    package var sessions = SessionTable.Limits()
    package var enrolment = EnrolmentAdmission.Settings()
    package internal(set) var apple = AppleSettings()
    /// How the verdicts for origins are signed; `nil` for not at all.
    package internal(set) var verdict: VerdictSettings?
    package internal(set) var google = GoogleSettings()
    package internal(set) var tracing = TracingSettings()
    /// The peers that may name the client's address.
    package var trustedProxies: [IPNetwork] = []
    /// The field those proxies write.
    package var addressSource = ClientAddress.Source.xForwardedFor
    package var traces = TraceRule.carry
    package var timeouts = Timeouts()
    package internal(set) var limits = ProxyLimits()
    package var log = LogSettings()
    package var process = ProcessSettings()
    package var hooks = HookSettings()
    /// In the order of the file; rules refer to them by index.
    package internal(set) var proofs: [ProofSettings] = []
    /// The parties whose proofs the file may name.
    package internal(set) var parties: [any ProofParty.Type] = ProofParties.standard
    package var endpointsPath = "/.well-known/app-attest"
    package var servesPlan = false
    package var probes = ProbePaths()
    /// Empty until it is chosen, where the file names none.
    package internal(set) var spillFolder = ""

    package var store: StorePlace { keeping.place }

    package static let keys = Keys<Self> {
        Key("listen", \.listeners, .list(of: listenerForm) { ListenSettings(keyPath: $0) })
            .comparing(\.listeningWithoutTLS)
            .means("The addresses for clients. A reload reads the files of tls again.")
            .needs(.upgrade)
        Key("admin", \.admin, AdminListener.form)
            .means("The listeners for operators. A reload reads the files of tokens again.")
            .needs(.upgrade)
        Key("event_loops", \.loops, loopCount)
            .means("How many event loops serve connections; auto: one for each core.")
            .needs(.upgrade)
        Key("origins", later: \.origins, .named { $0.name })
            .means("Groups of servers, by names that rules use, or a folder of files with some.")
        Key("apps", later: \.statedApps, AppSettings.differences)
            .means(
                "The apps whose keys are admitted, or a folder of files with some. Mandatory where "
                    + "a rule verifies."
            )
        Key("store", \.keeping, .mapping)
            .means("Where keys are kept. Mandatory where there are apps.")
        Key("challenges", \.challenges, .mapping).means("How challenges are issued.")
            .needs(.upgrade)
        Key("sessions", \.sessions, .mapping).means("Sessions: an assertion for a while.")
            .needs(.upgrade)
        Key("enrolment", \.enrolment, .mapping).means("How many keys may enrol.")
        Key("apple", later: \.apple, .mapping).means("The calls to Apple's services.")
        Key("verdict", VerdictSettings.section).means("The verdicts that origins get.")
        Key("google", later: \.google, .mapping)
            .means("The calls to Google's servers. They count only where an app is an Android app.")
        Key("trusted_proxies", \.trustedProxies, networks)
            .means("The networks whose word about the client's address is taken.")
        Key("client_address", \.addressSource, addressSource)
            .means("The field in which those proxies name the client.")
        Key("traces", \.traces, .word)
            .means("Whether requests without a trusted proxy's traceparent get one.")
        Key("tracing", later: \.tracing, .mapping)
            .means("The spans of requests, for a collector. Without an endpoint there are none.")
        Key("timeouts", \.timeouts, .mapping).means("How long the gateway waits, and for what.")
        Key("limits", \.limits, .mapping).means("The bounds of what is read and held.")
        Key("log", \.log, .mapping).means("The logs.")
        Key("process", \.process, .mapping)
            .means("The rights that the process gives up before it serves.").needs(.restart)
        Key("endpoints", \.endpointsPath, endpoints)
            .means("The path of the gateway's own endpoints.")
        Key("plan", \.servesPlan, .onOff)
            .means("Whether apps get the plan below the endpoints' path.")
            .because("anyone could read the hosts, paths and names of all rules")
        Key("probes", \.probes, .mapping)
            .means("Paths at which every listener answers probes itself.")
        Key("spill_folder", \.spillFolder, .path("a folder's path"))
            .means("The folder for held content that is too large for memory.")
            .because(
                "the first of /tmp, /var/tmp and /dev/shm that is on another file system than the "
                    + "store, can be written and is on a disk"
            )
        Key("hooks", \.hooks, .mapping)
            .means("Commands that the gateway runs after certain events.")
        Key("proofs", later: \.proofs, ProofSettings.form)
            .means("Tokens of other issuers that rules take or ask for, by names that rules use.")
        Key("default")
            .means("What happens to a request that no rule matches: a rule without id and match.")
        Key("rules").means("A folder of *.yaml files, read in lexical order, or a list right here.")
    }.checked { reader, settings in
        // Their times are those of `timeouts` where they have none of their own.
        settings.origins = UpstreamSettings.all(reader, settings.timeouts)
    }

    // A reload reads the certificates again.
    private var listeningWithoutTLS: [ListenSettings] { listeners.map(\.withoutTLS) }

    private static let loopCount = ValueForm<EventLoopCount>(
        {
            $0.value($1, use: "auto | 1…256", words: ["auto"]) { text -> EventLoopCount? in
                if text == "auto" { return .perCore }
                let number = Int(digits: text)
                return number.flatMap { (1...256).contains($0) ? .fixed($0) : nil }
            }
        },
        text: { count in
            switch count {
            case .perCore: "auto"
            case .fixed(let number): "\(number)"
            }
        }
    )

    private static let listenerForm = "listeners: - address: 0.0.0.0:8443"

    private static let networks = ValueForm<[IPNetwork]>.texts(
        "networks such as 10.0.0.0/8, no bit set after the prefix"
    ) { IPNetwork($0) }.takingVariables

    private static let addressSource = ValueForm<ClientAddress.Source>(
        { reader, key in
            let sources: [String: ClientAddress.Source] = [
                "x-forwarded-for": .xForwardedFor, "forwarded": .forwarded,
            ]
            let words = ["x-forwarded-for", "forwarded"]
            return reader.value(key, use: words.joined(separator: " | "), words: words) {
                sources[$0.lowercased()]
            }
        },
        text: { $0 == .forwarded ? "forwarded" : "x-forwarded-for" }
    )

    private static let endpoints = ValueForm<String>.text(
        "a path of plain segments without a slash at its end",
        TextForm.plainPath
    )
}

/// How challenges are issued.
package struct ChallengeSettings: Hashable, Sendable, Declared {
    package var enrolmentLifetime: Duration = .seconds(3600)
    package var assertionLifetime: Duration = .seconds(300)
    /// Each takes at most 170 bytes, and a few bits where most issued challenges are spent.
    package var capacity = 1 << 20

    /// The lifetime of the longest-lived challenge, in seconds.
    package var lifetimeMax: Int64 { max(enrolmentLifetime, assertionLifetime).components.seconds }

    package init() {}

    package static let keys = Keys<Self> {
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
    package static let keys = Keys<Self> {
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
    package static let keys = Keys<Self> {
        Key("rate", \.perSecond, .perSecond(of: "challenges a second", max: 10_000))
            .means("Enrolment challenges, for all apps together; then 429.")
            .because("Apple asks for less than 100 attestKey calls a second of an app")
        Key("burst", \.burst, .count(1...1_000_000))
            .means("Enrolment challenges at once, after a pause.")
        Key("per_attester", \.perAttester, .orOff(unit: "/d"))
            .means("Android keys that one certificate's public key may attest; then 429.")
            .because("a leaked key of a factory signs any description")
        MappingReader.scheduleKeys(\EnrolmentAdmission.Settings.ramp)
    }.checked { reader, settings in
        guard reader.hasSchedule, let schedule = reader.schedule() else { return }
        settings.ramp = schedule
    }
}

/// The rights that the process gives up before it serves. Read only at the start.
package struct ProcessSettings: Hashable, Sendable, Declared {
    package var user: String?
    package var group: String?
    package var allowsCoreDumps = false

    package init() {}

    package static let keys = Keys<Self> {
        Key("user", orNone: \.user, .name("a user's name", name))
            .means("The user of the process after root has started it and bound its addresses.")
        Key("group", orNone: \.group, .name("a group's name", name))
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
package struct HookSettings: Hashable, Sendable, Declared {
    package static let wordsMax = 16
    private static let bytesMax = 4_096

    /// The program and its arguments; empty for none.
    package var onGuard: [String] = []
    package var timeout = Duration.seconds(10)

    package init() {}

    package static let keys = Keys<Self> {
        Key("guard", \.onGuard, ValueForm { words($0, $1) }.takingVariables)
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
            let form = ReadingRecord.Text(use: use)
            let word = reader.value(of: entry.node, entry.keyPath, as: form) { text in
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
