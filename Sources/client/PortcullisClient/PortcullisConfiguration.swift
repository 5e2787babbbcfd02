public import Foundation

/// What a ``PortcullisSession`` is made from.
public struct PortcullisConfiguration: Sendable {
    /// The gateway's endpoints: `https://api.example.com/.well-known/app-attest`. Their origin is
    /// the gateway's.
    public var endpoints: URL
    /// Further origins of the same gateway, as `https://cdn.example.com`. A proof is sent nowhere
    /// else.
    public var origins: [URL] = []
    /// What routes ask, as `portcullis plan` wrote it. Without one, a first request to a route goes
    /// without proof and learns from the answer.
    public var plan: SigningPlan?
    /// Whether the plan is fetched from the gateway, whose configuration must say `plan: on`. Then
    /// ``plan`` counts until one has come. It is fetched beside requests, and again when it is old;
    /// none fails because of it. Over plain HTTP it is not, unless the gateway is on this machine:
    /// others could write it.
    public var fetchesPlan = false
    /// Where a fetched plan, and what answers have taught, are kept when the process ends. On
    /// Apple's systems that is the folder of caches, elsewhere nowhere.
    public var routeMemory = Self.usualMemory
    /// What is signed where neither the plan nor an answer says so; `nil` to ask first.
    public var defaultRequirement: SigningRequirement?
    /// Bytes that the gateway keeps with the key and gives to its origins: 1 to 256, such as a hash
    /// of an account. They are bound to the key when it is attested.
    /// With another number of bytes no key is enrolled: ``EnrolmentHold/Cause/contextUnfit``.
    public var context: Data?
    /// What makes device tokens, for routes whose rule has `device`: `DeviceCheckService` on
    /// Apple's systems, none elsewhere.
    public var deviceTokens: (any DeviceTokenService)? = Self.systemDeviceTokens
    /// Whether sessions are opened for routes that accept them. Over plain HTTP none is, unless the
    /// gateway is on this machine: a session has a secret.
    public var usesSessions = true
    /// How long the session waits, and how much it keeps.
    public var limits = PortcullisLimits()
    /// Called with each event, where it happens: for a logger that must miss none. It must return
    /// soon, since requests wait for it. ``PortcullisSession/events`` is the same as a stream.
    public var log: (@Sendable (PortcullisEvent) -> Void)?
    /// The time.
    public var clock: any ClientClock = SystemClock()
    /// A number from 0 up to 1, for jitter.
    public var random: @Sendable () -> Double = { Double.random(in: 0..<1) }

    /// A configuration with defaults for a gateway: `https://api.example.com`. Its endpoints are
    /// below `/.well-known/app-attest`. Where they are not, set ``endpoints``.
    public init(gateway: URL) { endpoints = gateway.appending(path: Self.usual) }

    private static var systemDeviceTokens: (any DeviceTokenService)? {
        #if canImport(DeviceCheck)
            DeviceCheckService()
        #else
            nil
        #endif
    }

    private static var usualMemory: RouteMemory {
        #if canImport(Darwin)
            .caches
        #else
            .none
        #endif
    }

    private static let usual = ".well-known/app-attest"
}

/// How long a session waits, and how much it keeps.
public struct PortcullisLimits: Hashable, Sendable {
    /// The longest time that one request waits in all: for its key, a session, challenges, its
    /// device token and its assertion, and before it is sent again, all tries and redirects
    /// together. Where its `timeoutInterval` is shorter, that is the limit. The other limits are
    /// within this one. When the time is over, the request goes with what can be had at once.
    ///
    /// The time of sending does not count, nor does the turn of a strict counter: ``strictWait``.
    public var proofWait: Duration = .seconds(10)
    /// The longest time that a request waits for its key to be enrolled. Where the gateway said
    /// that the route's rule only observes, a request goes at once.
    public var enrolmentWait: Duration = .seconds(10)
    /// The longest time that requests to routes of which nothing is known wait for the plan,
    /// counted from when it is asked for. Then they go without proof and learn from the answer.
    public var planWait: Duration = .seconds(2)
    /// The longest plan that is read, in bytes. A gateway serves at most a fourth of that.
    public var planBytes = 1 << 20
    /// The longest time that a call of the gateway's endpoints takes, its answer included.
    public var callTime: Duration = .seconds(30)
    /// The longest time that a request waits for a challenge. Where the gateway said that the
    /// route's rule only observes, it is a quarter of a second.
    public var challengeWait: Duration = .seconds(5)
    /// The longest time that a request waits for a session to be opened. Where the gateway said
    /// that the route's rule only observes, a request goes at once.
    public var sessionWait: Duration = .seconds(5)
    /// The longest time that a request waits for its turn to be signed. Where a rule's counter is
    /// `strict`, a turn lasts until the answer has begun, and requests to other routes wait for it,
    /// too. After this time, or its `timeoutInterval`, a request is signed and sent all the same.
    public var strictWait: Duration = .seconds(30)
    /// The longest time that one request of a rule whose counter is `strict` keeps the next ones
    /// waiting for its answer. The gateway has usually judged it long before. Where it has not, and
    /// the next one comes first, it is refused as `counter-replayed`, and signed again
    /// unless it may have run: ``ProvenResponse/mayHaveRun``.
    public var strictTurn: Duration = .seconds(5)
    /// How often one request is sent, the first time included, redirects apart. To be sent without
    /// proof, in order to learn what the route signs, or while the key is being enrolled or that is
    /// held, does not count.
    public var maximumAttempts = 3
    /// The longest `Retry-After` of the gateway's after which a request is sent again by itself. An
    /// answer that asks for more is the caller's.
    public var retryWait: Duration = .seconds(10)
    /// How many redirects are followed.
    public var redirects = 10
    /// How many keys are attested in 24 hours. Apple counts them against the device.
    public var keysPerDay = 3
    /// The first delay after a failed enrolment. It doubles, with jitter, up to
    /// ``enrolmentDelayMax``.
    public var enrolmentDelay: Duration = .seconds(2)
    /// The longest delay between two enrolments, unless `Retry-After` asks for more.
    public var enrolmentDelayMax: Duration = .seconds(3600)
    /// The longest `Retry-After` that is obeyed. A longer one is cut to it.
    public var retryAfterMax: Duration = .seconds(86_400)
    /// The longest time that a request waits for its assertion. Then it goes without.
    public var assertionWait: Duration = .seconds(10)
    /// The longest time that a key or an attestation takes. A slower one counts as
    /// ``AttestationServiceError/serverUnavailable``; what it still brings is used by the next try.
    public var serviceWait: Duration = .seconds(60)
    /// The longest time that a request waits for its device token. Then it goes without.
    public var deviceTokenWait: Duration = .seconds(5)
    /// How long a process that enrols keeps others from it: an hour at most, and at least 30
    /// seconds longer than ``serviceWait`` and ``callTime``. It begins again with each step.
    public var lease: Duration = .seconds(90)
    /// The most challenges that are kept.
    public var challengesKept = 16
    /// How many challenges are asked for at once, at most 8.
    public var challengesAsked = 4
    /// How long a challenge of unknown lifetime is used.
    public var challengeLifetime: Duration = .seconds(60)
    /// The most bytes of a content stream, which is put into a file so that it can be signed and
    /// sent again. A longer one is an error, and has to be uploaded from a file.
    public var spooledBytes = 1 << 30
    /// The most bytes that ``PortcullisSession/data(for:requiring:delegate:)`` collects.
    public var answerBytes = 256 << 20
    /// The most bytes that ``PortcullisSession/download(for:requiring:delegate:)`` writes.
    public var downloadBytes = 8 << 30
    /// The most routes of which it is remembered what they sign.
    public var routesLearned = 128

    /// The defaults.
    public init() {}
}
