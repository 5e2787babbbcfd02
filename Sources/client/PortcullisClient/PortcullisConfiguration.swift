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

    /// A configuration with defaults for a gateway whose endpoints are at another place than usual.
    @available(*, deprecated, message: "Use init(gateway:), and set endpoints where they differ.")
    public init(endpoints: URL) { self.endpoints = endpoints }

    /// The name of ``defaultRequirement`` before version 1.
    @available(*, deprecated, renamed: "defaultRequirement")
    public var assumed: SigningRequirement? {
        get { defaultRequirement }
        set { defaultRequirement = newValue }
    }

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
