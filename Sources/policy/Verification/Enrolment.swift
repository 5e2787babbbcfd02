package import AppAttest
import ByteCoding
package import Challenges
package import Cryptography
import JSONText
package import KeyStore
import RequestBinding
package import Rules

/// The gateway's own endpoints: challenges, and the enrolment of keys.
///
/// Nothing is stored, and no challenge is spent, for an attestation that does not verify.
package final class Enrolment: Sendable {
    /// What the caller does next.
    package enum Action: Sendable {
        /// Answer with these challenges, which are good for so many seconds.
        case challenges([String], lifetimeSeconds: Int64)
        /// Answer that the key is enrolled: now, or since long.
        case enrolled(KeyID, isNew: Bool)
        case refuse(EnrolmentRefusal)
        /// Store this key, then say how it went to ``stored(_:)``.
        case store(KeyRecord)
    }

    /// The bounds of what strangers may cause.
    package struct Limits: Sendable {
        /// Keys a second for each app, over all lanes. Apple asks for less than 100 `attestKey`
        /// calls a second over all installs of an app ("Preparing to use the App Attest service").
        package var keysPerSecond = 100
        package var keysBurst = 200
        /// Attestations that are examined a second, good or bad, over all lanes: each costs three
        /// signatures.
        package var examinationsPerSecond = 500
        package var examinationsBurst = 1_000

        package init() {}
    }

    /// The most challenges of one call.
    private static let challengesPerCallMax = 8

    private struct App: Sendable {
        let policy: AppPolicy
        let expected: ExpectedApp
        let throttle: Throttle
    }

    private let issuer: ChallengeIssuer
    private let keys: KeyTable
    private let apps: [App]
    private let roots: [X509Certificate]
    private let receiptRoots: [X509Certificate]
    private let examinationThrottle: Throttle

    /// - `roots`: who may sign attestations of every app; Apple's, outside of tests.
    /// - `receiptRoots`: the same for receipts.
    package init(
        apps: [AppPolicy],
        roots: [X509Certificate],
        receiptRoots: [X509Certificate],
        keys: KeyTable,
        issuer: ChallengeIssuer,
        limits: Limits
    ) {
        self.issuer = issuer
        self.keys = keys
        self.roots = roots
        self.receiptRoots = receiptRoots
        self.apps = apps.map { policy in
            App(
                policy: policy,
                expected: policy.expected,
                throttle: Throttle(perSecond: limits.keysPerSecond, burst: limits.keysBurst)
            )
        }
        examinationThrottle = Throttle(
            perSecond: limits.examinationsPerSecond,
            burst: limits.examinationsBurst
        )
    }

    /// A fresh challenge as text.
    package func challenge(_ purpose: ChallengePurpose, now: Int64) -> String {
        String(decoding: issuer.issue(purpose, now: now), as: UTF8.self)
    }

    // MARK: POST …/challenges

    /// Serves `{"purpose": "enrolment" | "assertion", "count": 1…8}`; both have defaults.
    ///
    /// No limit over all clients: issuing keeps nothing, and such a limit would let some clients
    /// use up what others need. What an address may ask for is limited by the caller.
    ///
    /// - `now`: the wall clock in seconds.
    package func challenges(for content: Span<UInt8>, now: Int64) -> Action {
        var purpose = ChallengePurpose.assertion
        var count = 1
        if !content.isEmpty {
            guard let document = JSONDocument(content, members: ["purpose", "count"]) else {
                return .refuse(EnrolmentRefusal(.requestMalformed))
            }
            if document.has("purpose") {
                guard let named = document.string("purpose").flatMap(ChallengePurpose.init(name:))
                else {
                    return .refuse(EnrolmentRefusal(.requestMalformed))
                }
                purpose = named
            }
            if document.has("count") {
                guard let asked = document.integer("count"),
                    (1...Self.challengesPerCallMax).contains(asked)
                else { return .refuse(EnrolmentRefusal(.requestMalformed)) }
                count = asked
            }
        }
        return .challenges(
            (0..<count).map { _ in challenge(purpose, now: now) },
            lifetimeSeconds: issuer.lifetime(of: purpose)
        )
    }

    // MARK: POST …/keys

    private static let enrolMembers: Set = ["key_id", "attestation", "challenge", "context"]

    /// Serves `{"key_id", "attestation", "challenge"}`, with `"context"` where the app has one.
    ///
    /// Checked in this order: the document; the challenge; Apple's steps 1–11; the receipt where
    /// the app requires one. A key that is enrolled already is answered 200 and keeps its counter.
    package func enrol(_ content: Span<UInt8>, now: UnixTime, at tick: UInt64) -> Action {
        guard
            let document = JSONDocument(content, members: Self.enrolMembers),
            let keyText = document.string("key_id"), let keyID = KeyID(base64: keyText),
            let objectText = document.string("attestation"),
            let challenge = document.string("challenge").map({ Array($0.utf8) }),
            case .readable(let context) = Self.context(of: document)
        else { return .refuse(.inVain(.requestMalformed)) }
        let serial: ChallengeSerial
        switch issuer.examine(challenge.span, purpose: .enrolment, now: now.seconds) {
        case .valid(let good): serial = good
        case .unknown: return refuse(.challengeUnknown, now)
        case .expired: return refuse(.challengeExpired, now)
        case .spent: return refuse(.challengeSpent, now)
        }
        if let wait = examinationThrottle.take(now: tick) { return .refuse(Self.throttled(wait)) }
        guard let object = Base64.decode(objectText) else {
            return .refuse(.inVain(.attestationMalformed))
        }
        let clientData = EnrolmentLines.clientData(
            challenge: challenge,
            contextDigest: context.map { SHA256.digest(of: $0).octets }
        )
        let action = examine(object, keyID, context, now: now, at: tick) { hashing in
            hashing == .sha256 ? SHA256.digest(of: clientData).octets : clientData
        }
        guard case .store = action else { return action }
        switch issuer.spend(serial) {
        case .spent: return action
        case .spentBefore: return refuse(.challengeSpent, now)
        case .noRoom: return .refuse(EnrolmentRefusal(.challengesExhausted))
        }
    }

    private enum ContextReading {
        /// `nil`: there is none.
        case readable([UInt8]?)
        case malformed
    }

    private static func context(of document: JSONDocument) -> ContextReading {
        guard document.has("context") else { return .readable(nil) }
        guard let text = document.string("context"), let bytes = Base64.decode(text),
            (1...EnrolmentLines.contextBytesMax).contains(bytes.count)
        else { return .malformed }
        return .readable(bytes)
    }

    /// Judges an attestation whose challenge is good: Apple's steps 1–11, the receipt, the app's
    /// rate.
    ///
    /// - `clientDataHash`: what the client has handed to `attestKey`, by the app's setting.
    func examine(
        _ object: [UInt8],
        _ keyID: KeyID,
        _ context: [UInt8]? = nil,
        now: UnixTime,
        at tick: UInt64,
        clientDataHash: (AppPolicy.ClientDataHash) -> [UInt8]
    ) -> Action {
        let verified: VerifiedAttestation
        let app: App
        do throws(AttestationRefusal) {
            let attestation = try UnverifiedAttestation(bytes: object)
            guard let named = apps.first(where: { $0.policy.hash == attestation.appIDHash })
            else {
                return .refuse(.inVain(.appMismatch))
            }
            app = named
            let hash = clientDataHash(app.policy.clientDataHash)
            verified = try attestation.verified(
                clientDataHash: hash.span,
                keyID: keyID,
                apps: [app.expected],
                roots: roots + app.policy.testRoots,
                at: now
            )
        } catch {
            return .refuse(.inVain(Refusal(error.reason)))
        }
        let isTest = app.policy.testRoots.contains { $0.der == verified.root.der }
        guard isTest || app.policy.environments.contains(verified.environment) else {
            return .refuse(.inVain(.environmentMismatch))
        }
        // A test authority has one root for attestations and receipts.
        let hasReceipt = isGenuine(verified, now, isTest ? app.policy.testRoots : receiptRoots)
        guard hasReceipt || app.policy.receipt == .optional else {
            return .refuse(.inVain(.receiptRefused))
        }
        if let wait = app.throttle.take(now: tick) { return .refuse(Self.throttled(wait)) }
        return .store(
            KeyRecord(
                attested: verified,
                publicKey: verified.publicKey,
                appID: app.policy.id,
                environment: isTest ? .test : KeyEnvironment(verified.environment),
                receipt: hasReceipt ? verified.receipt : nil,
                context: context,
                now: now.seconds
            )
        )
    }

    /// Whether the attestation's own receipt verifies (Apple, "Assessing fraud risk", six checks).
    private func isGenuine(
        _ verified: VerifiedAttestation,
        _ now: UnixTime,
        _ roots: [X509Certificate]
    ) -> Bool {
        do throws(ReceiptRefusal) {
            _ = try UnverifiedReceipt(bytes: verified.receipt).verified(
                appIDs: [verified.app.id],
                key: verified.publicKey,
                roots: roots,
                freshness: UnverifiedReceipt.Freshness(now: now, secondsMax: Self.receiptAgeMax)
            )
            return true
        } catch {
            return false
        }
    }

    /// Apple asks for five minutes. `attestKey` may be retried with the same challenge for as long
    /// as that lives, and answers with the receipt of the first try.
    private static let receiptAgeMax: Int64 = 3 * 86_400

    /// The store has answered.
    package func stored(_ outcome: EnrolOutcome) -> Action {
        switch outcome {
        case .inserted(let keyID): .enrolled(keyID, isNew: true)
        case .existing(let keyID): .enrolled(keyID, isNew: false)
        case .revoked: .refuse(EnrolmentRefusal(.keyRevoked))
        case .failed: .refuse(EnrolmentRefusal(.storeUnavailable))
        }
    }

    private func refuse(_ refusal: Refusal, _ now: UnixTime) -> Action {
        .refuse(EnrolmentRefusal(refusal, challenge: challenge(.enrolment, now: now.seconds)))
    }

    private static func throttled(_ wait: UInt64) -> EnrolmentRefusal {
        EnrolmentRefusal(.enrolmentThrottled, waitSeconds: Int(wait / 1_000_000_000) + 1)
    }
}

extension Refusal {
    init(_ reason: AttestationRefusal.Reason) {
        switch reason {
        case .malformed: self = .attestationMalformed
        case .certificateUntrusted: self = .certificateUntrusted
        case .certificateExpired: self = .certificateExpired
        case .nonceMismatch: self = .nonceMismatch
        case .accessControlMismatch: self = .accessControlMismatch
        case .keyIDMismatch: self = .keyIDMismatch
        case .appMismatch: self = .appMismatch
        case .counterNotZero: self = .counterNotZero
        case .environmentMismatch: self = .environmentMismatch
        case .categoryRefused: self = .categoryRefused
        case .versionRefused: self = .versionRefused
        }
    }
}
