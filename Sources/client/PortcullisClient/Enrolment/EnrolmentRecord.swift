public import Foundation

/// What is kept about this install's key, so that nothing that Apple was asked for is lost.
///
/// ```
/// none → generated(key) → generated(key, grant) → attested(key, grant, object) → enrolled(key)
/// ```
struct EnrolmentRecord: Equatable, Sendable {
    /// How far the key came.
    enum Phase: Equatable, Sendable {
        /// No key.
        case none
        /// The service has the key. With a grant, Apple may have been asked: the same key and the
        /// same grant are tried again.
        case generated(keyID: String, EnrolmentGrant?)
        /// Apple attested the key. The gateway may have it.
        case attested(keyID: String, EnrolmentGrant, object: Data)
        /// The gateway has the key.
        case enrolled(keyID: String)
    }

    /// Who enrols now. Others wait until it ends.
    struct Lease: Hashable, Sendable, Codable {
        /// A ``PortcullisSession``, by a random text.
        let holder: String
        /// Its process.
        let process: Int32
        /// When it ends, in seconds since 1970.
        let until: Double
    }

    /// The endpoints of the gateway that has the key.
    var gateway: String
    var phase = Phase.none
    var lease: Lease?
    /// Whether the enrolled key is bound to a context; `nil` where there is none.
    var hasContext: Bool?
    /// When keys were attested in the last day, oldest first, in seconds since 1970.
    var attestations: [Double] = []
    /// The last key among them. Apple may be asked for it several times.
    var countedKey: String?
    /// When keys were lost or refused in the last day, oldest first.
    var losses: [Double] = []
    /// How many tries failed since the last one that did not.
    var failures = 0
    /// How often the device failed to attest the key that is under way, and does not say why.
    var keyFailures = 0
    /// How often the device failed to make or attest a key, in a way that lasts, since one of its
    /// keys was attested.
    var deviceFailures = 0
    /// When a key was given up last because the device failed to attest it and did not say why, in
    /// seconds since 1970; `nil` for never.
    var unexplained: Double?
    /// Until when nothing is tried.
    var hold: EnrolmentHold?

    init(gateway: String) { self.gateway = gateway }

    /// The key, however far it came.
    var keyID: String? {
        switch phase {
        case .none: nil
        case .generated(let keyID, _), .attested(let keyID, _, _), .enrolled(let keyID): keyID
        }
    }

    /// Whether the key is, or would be, bound to a context, as far as it is known.
    var mayHaveContext: Bool {
        switch phase {
        case .none: false
        case .generated(_, let grant): grant?.context != nil
        case .attested(_, let grant, _): grant.context != nil
        case .enrolled: hasContext ?? true
        }
    }

    /// Whether the device counts as one that can't attest. One failure may pass.
    var isDeviceBroken: Bool { deviceFailures >= 2 }

    /// How far the phase is from none.
    var progress: Int {
        switch phase {
        case .none: 0
        case .generated(_, nil): 1
        case .generated: 2
        case .attested: 3
        case .enrolled: 4
        }
    }
}

/// Why no key is enrolled now, and until when none is tried.
public struct EnrolmentHold: Hashable, Sendable, Codable {
    /// What holds it.
    ///
    /// May grow: a `switch` over it has an `@unknown default`.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive(warn)
    #endif
    public enum Cause: Hashable, Sendable, Codable {
        /// Apple's service is not reached or busy. The same key is tried again.
        case appleUnavailable
        /// The device's service failed.
        case serviceFailed(AttestationServiceError)
        /// The gateway admits no more enrolments now, or not yet.
        case throttled
        /// The gateway was not reached or failed.
        case gatewayUnavailable
        /// Keys were lost or refused several times.
        case keysLost
        /// As many keys as a day allows were attested: ``PortcullisLimits/keysPerDay``.
        case dailyCap
        /// The context has no byte, or more than 256: ``PortcullisConfiguration/context``. No key
        /// is enrolled until ``PortcullisSession/reset(context:)`` brings another one.
        case contextUnfit
        /// The gateway does not admit this app or device, for this reason.
        case refused(reason: String)
    }

    /// What holds it.
    public let cause: Cause
    /// When the next try may begin.
    public let until: Date

    /// A hold until a time.
    public init(_ cause: Cause, until: Date) { (self.cause, self.until) = (cause, until) }
}

// JSON with a version. A record of a later version is read as far as its names are the same, so
// that an older build of the app goes on with the key that a newer one enrolled.
extension EnrolmentRecord {
    private static let version = 1
    /// The most times that are read, of attestations and of losses. A day brings fewer.
    private static let timesMax = 64
    /// The most failures that are read. Delays stop growing far below.
    private static let failuresMax = 1000

    private struct Stored: Codable {
        struct Hold: Codable {
            let cause: String
            let detail: String?
            let until: Double
        }

        var version: Int
        var gateway: String
        var phase: String
        var key_id: String?
        var challenge: String?
        var context: Data?
        var challenge_until: Double?
        var object: Data?
        var has_context: Bool?
        var lease: Lease?
        var attestations: [Double]?
        var counted_key: String?
        var losses: [Double]?
        var failures: Int?
        var key_failures: Int?
        var device_failures: Int?
        var unexplained: Double?
        var hold: Hold?
    }

    /// Reads a record; an empty one where there is none for this gateway or it can't be read.
    init(_ bytes: Data?, gateway: String) {
        self.init(gateway: gateway)
        guard let bytes, let stored = try? JSONDecoder().decode(Stored.self, from: bytes) else {
            return
        }
        // What Apple counts, it counts for the device, whatever the gateway. So it is with what
        // the device can't do.
        deviceFailures = min(max(stored.device_failures ?? 0, 0), Self.failuresMax)
        unexplained = stored.unexplained
        attestations = Array((stored.attestations ?? []).suffix(Self.timesMax))
        countedKey = stored.counted_key
        lease = stored.lease
        guard stored.gateway == gateway else { return }
        hasContext = stored.has_context
        losses = Array((stored.losses ?? []).suffix(Self.timesMax))
        failures = min(max(stored.failures ?? 0, 0), Self.failuresMax)
        keyFailures = min(max(stored.key_failures ?? 0, 0), Self.failuresMax)
        hold = stored.hold.flatMap(Self.hold)
        phase = Self.phase(stored)
    }

    /// The record as it is kept.
    var bytes: Data? {
        var stored = Stored(version: Self.version, gateway: gateway, phase: "none")
        switch phase {
        case .none: break
        case .generated(let keyID, let grant):
            stored.phase = "generated"
            stored.key_id = keyID
            Self.put(grant, into: &stored)
        case .attested(let keyID, let grant, let object):
            stored.phase = "attested"
            (stored.key_id, stored.object) = (keyID, object)
            Self.put(grant, into: &stored)
        case .enrolled(let keyID):
            stored.phase = "enrolled"
            stored.key_id = keyID
        }
        stored.has_context = hasContext
        stored.lease = lease
        stored.attestations = attestations
        stored.counted_key = countedKey
        stored.losses = losses
        stored.failures = failures
        stored.key_failures = keyFailures
        stored.device_failures = deviceFailures
        stored.unexplained = unexplained
        stored.hold = hold.map(Self.stored)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        // Only a number that is infinite can't be encoded, and none is.
        return try? encoder.encode(stored)
    }

    private static func put(_ grant: EnrolmentGrant?, into stored: inout Stored) {
        stored.challenge = grant?.challenge
        stored.context = grant?.context
        stored.challenge_until = grant?.until
    }

    private static func phase(_ stored: Stored) -> Phase {
        guard let keyID = stored.key_id, !keyID.isEmpty else { return .none }
        let grant = stored.challenge.map { challenge in
            EnrolmentGrant(
                challenge: challenge,
                context: stored.context,
                until: stored.challenge_until ?? 0
            )
        }
        switch (stored.phase, grant, stored.object) {
        case ("enrolled", _, _): return .enrolled(keyID: keyID)
        case ("attested", let grant?, let object?):
            return .attested(keyID: keyID, grant, object: object)
        case ("generated", let grant, _): return .generated(keyID: keyID, grant)
        default: return .none
        }
    }

    private static func stored(_ hold: EnrolmentHold) -> Stored.Hold {
        let (cause, detail): (String, String?) =
            switch hold.cause {
            case .appleUnavailable: ("apple-unavailable", nil)
            case .serviceFailed(let error): ("service-failed", error.rawValue)
            case .throttled: ("throttled", nil)
            case .gatewayUnavailable: ("gateway-unavailable", nil)
            case .keysLost: ("keys-lost", nil)
            case .dailyCap: ("daily-cap", nil)
            case .contextUnfit: ("context-unfit", nil)
            case .refused(let reason): ("refused", reason)
            }
        return Stored.Hold(cause: cause, detail: detail, until: hold.until.timeIntervalSince1970)
    }

    private static func hold(_ stored: Stored.Hold) -> EnrolmentHold? {
        let cause: EnrolmentHold.Cause
        switch stored.cause {
        case "apple-unavailable": cause = .appleUnavailable
        case "service-failed":
            let error = AttestationServiceError(rawValue: stored.detail ?? "")
            cause = .serviceFailed(error ?? .unknownSystemFailure)
        case "throttled": cause = .throttled
        case "keys-lost": cause = .keysLost
        case "daily-cap": cause = .dailyCap
        case "context-unfit": cause = .contextUnfit
        case "refused": cause = .refused(reason: stored.detail ?? "")
        default: cause = .gatewayUnavailable
        }
        return EnrolmentHold(cause, until: Date(timeIntervalSince1970: stored.until))
    }
}

/// What the gateway gave for one enrolment: the challenge that Apple signs, and what is bound to
/// the key with it.
struct EnrolmentGrant: Hashable, Sendable, Codable {
    /// The text of the challenge.
    let challenge: String
    /// What the gateway keeps with the key; `nil` for nothing.
    let context: Data?
    /// When the challenge ends, in seconds since 1970.
    let until: Double
}
