import AppAttest
import Encodings
package import KeyAttestation
import KeyStore
package import Rules
package import Signatures

/// What a client sends to have a key enrolled, in the form of its platform, as text.
enum AttestationText {
    /// Base64 of App Attest's attestation object.
    case apple(String)
    /// Base64 of each certificate of a phone's chain, the leaf first.
    case android([String])

    /// Takes `attestation`, or of an Android phone `chain`; `nil` where it is not there, or the
    /// other one is.
    init?(_ document: JSONDocument) {
        let platform =
            document.has("platform")
            ? document.string("platform").flatMap(DevicePlatform.init(rawValue:)) : .apple
        switch (platform, document.string("attestation"), document.list("chain")) {
        case (.apple, let object?, nil): self = .apple(object)
        case (.android, nil, let chain?): self = .android(chain)
        default: return nil
        }
    }
}

/// Google's list of revoked certificates, and when it came.
package struct DatedStatusList: Sendable {
    package let list: StatusList
    /// Second of Unix time at which Google vouched for it.
    package let fetchedAt: Int64

    package init(_ list: StatusList, fetchedAt: Int64) {
        (self.list, self.fetchedAt) = (list, fetchedAt)
    }
}

/// Judges what attests a key, and makes the record to store. The challenge is good already.
package struct KeyAttestor: Sendable {
    /// Reports the newest status list; `nil` when there is none.
    package typealias StatusSource = @Sendable () -> DatedStatusList?

    /// A key that may be enrolled.
    struct Attested {
        let record: KeyRecord
        /// SHA-256 of the public key that attested it, where others may have been attested by the
        /// same: 32 bytes.
        let attester: [UInt8]?
    }

    typealias Examined = Result<Attested, EnrolmentRefusal>

    private struct AppleApp: Sendable {
        let policy: AppPolicy
        let expected: ExpectedApp
    }

    private let appleApps: [AppleApp]
    private let androidApps: [(policy: AppPolicy, demands: AndroidDemands)]
    private let roots: [X509Certificate]
    private let receiptRoots: [X509Certificate]
    private let statusList: StatusSource

    /// - `roots`: who may sign attestations of every app of Apple's systems; Apple's, outside of
    ///   tests.
    /// - `receiptRoots`: who may sign receipts.
    package init(
        apps: [AppPolicy],
        roots: [X509Certificate] = [AppleRoots.appAttestation],
        receiptRoots: [X509Certificate] = [AppleRoots.rootG3],
        statusList: @escaping StatusSource
    ) {
        appleApps = apps.filter { $0.android == nil }.map {
            AppleApp(policy: $0, expected: $0.expected)
        }
        androidApps = apps.compactMap { app in app.android.map { (app, $0) } }
        self.roots = roots
        self.receiptRoots = receiptRoots
        self.statusList = statusList
    }

    /// The proofs whose tokens enrolments of its apps may carry, each once.
    var tokens: [TokenProof] {
        Array(Set(androidApps.compactMap { $0.demands.settings.integrity?.proof }))
    }

    /// What is asked of Google Play's verdict when a key of an app is enrolled; `nil` for nothing.
    func integrity(of appID: String) -> IntegrityRule? {
        androidApps.first { $0.policy.id == appID }?.demands.settings.integrity
    }

    /// - `clientDataHash`: what the client has handed to the system, by the app's setting.
    func examine(
        _ text: AttestationText,
        keyID: KeyID,
        context: [UInt8]?,
        now: UnixTime,
        clientDataHash: (AppPolicy.ClientDataHash) -> [UInt8]
    ) -> Examined {
        switch text {
        case .apple(let text):
            guard let object = Base64.decode(text) else {
                return .failure(.inVain(.attestationMalformed))
            }
            return examine(
                object,
                keyID: keyID,
                context: context,
                now: now,
                clientDataHash: clientDataHash
            )
        case .android(let texts):
            let chain = texts.compactMap { Base64.decode($0) }
            guard chain.count == texts.count else {
                return .failure(.inVain(.attestationMalformed))
            }
            // What `setAttestationChallenge` takes is bounded, so it is always a hash.
            let challenge = clientDataHash(.sha256)
            return examine(chain, keyID: keyID, context: context, challenge: challenge, now: now)
        }
    }
}

// MARK: Apple

extension KeyAttestor {
    /// Apple's steps 1–11, then the receipt where the app requires one.
    ///
    /// - `clientDataHash`: what the client has handed to `attestKey`, by the app's setting.
    func examine(
        _ object: [UInt8],
        keyID: KeyID,
        context: [UInt8]? = nil,
        now: UnixTime,
        clientDataHash: (AppPolicy.ClientDataHash) -> [UInt8]
    ) -> Examined {
        let verified: VerifiedAttestation
        let app: AppleApp
        do throws(AttestationRefusal) {
            let attestation = try UnverifiedAttestation(bytes: object)
            guard let named = appleApps.first(where: { $0.policy.hash == attestation.appIDHash })
            else { return .failure(.inVain(.appMismatch, app: attestation.appIDHash)) }
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
            return .failure(.inVain(Refusal(error.reason)))
        }
        let isTest = app.policy.testRoots.contains { $0.der == verified.root.der }
        guard isTest || app.policy.environments.contains(verified.environment) else {
            return .failure(.inVain(.environmentMismatch))
        }
        // A test authority has one root for attestations and receipts.
        let receipt = receipt(of: verified, now, isTest ? app.policy.testRoots : receiptRoots)
        guard receipt != nil || app.policy.receipt == .optional else {
            return .failure(.inVain(.receiptRefused))
        }
        var record = KeyRecord(
            attested: verified,
            publicKey: verified.publicKey,
            appID: app.policy.id,
            environment: isTest ? .test : KeyEnvironment(verified.environment),
            now: now.seconds
        )
        record.context = context
        if let receipt {
            (record.receipt, record.receiptState) = (receipt.bytes, ReceiptState(receipt.fields))
        }
        return .success(Attested(record: record, attester: nil))
    }

    /// The attestation's own receipt, if it verifies (Apple, "Assessing fraud risk", six checks).
    private func receipt(
        of verified: VerifiedAttestation,
        _ now: UnixTime,
        _ roots: [X509Certificate]
    ) -> VerifiedReceipt? {
        do throws(ReceiptRefusal) {
            return try UnverifiedReceipt(bytes: verified.receipt).verified(
                appIDs: [verified.app.id],
                key: verified.publicKey,
                roots: roots,
                freshness: UnverifiedReceipt.Freshness(now: now, secondsMax: Self.receiptAgeMax)
            )
        } catch {
            return nil
        }
    }

    /// Apple asks for five minutes. A client may retry `attestKey` with the same challenge while
    /// that is good, and gets the receipt of the first try.
    private static let receiptAgeMax: Int64 = 3 * 86_400
}

// MARK: Android

extension KeyAttestor {
    /// The procedure of Sources/docs/android.md, then the version of the app.
    ///
    /// - `challenge`: what the app has handed to `setAttestationChallenge`.
    private func examine(
        _ chain: [[UInt8]],
        keyID: KeyID,
        context: [UInt8]?,
        challenge: [UInt8],
        now: UnixTime
    ) -> Examined {
        let verified: VerifiedKeyAttestation
        let app: AppPolicy
        let demands: AndroidDemands
        do throws(KeyAttestationRefusal) {
            let attestation = try UnverifiedKeyAttestation(chain: chain)
            // A chain that names no app of ours is refused in step 12 at the latest, whatever app
            // it is judged by.
            let packages = attestation.packages
            let named = androidApps.first { packages.contains($0.policy.id) } ?? androidApps.first
            guard let named else { return .failure(.inVain(.appMismatch)) }
            (app, demands) = named
            guard let list = statusList(for: demands.settings, now: now) else {
                return .failure(.waiting(.statusListUnavailable, Self.statusWait))
            }
            verified = try attestation.verified(
                challenge: challenge,
                app: demands.expected(app.id, at: now),
                roots: app.isTest ? app.testRoots : GoogleRoots.all,
                statusList: list,
                at: now
            )
        } catch {
            return .failure(.inVain(Refusal(error.reason)))
        }
        guard verified.keyID == keyID else { return .failure(.inVain(.keyIDMismatch)) }
        guard demands.settings.accepts(version: verified.version) else {
            return .failure(.inVain(.versionRefused))
        }
        var record = KeyRecord(
            attested: verified,
            publicKey: verified.publicKey,
            appID: app.id,
            environment: app.isTest ? .test : .production,
            now: now.seconds
        )
        record.context = context
        record.chain = ChainRecord(
            serials: verified.serials.map(\.description),
            certificatesIssued: verified.provisioningInfo?.certificatesIssued
                .map { UInt32(clamping: $0) }
        )
        return .success(Attested(record: record, attester: verified.attesterID))
    }

    /// Nanoseconds until a client comes again for want of a status list.
    private static let statusWait: UInt64 = 60_000_000_000

    /// The list to judge by; `nil` when there is none that is young enough, and the app waits for
    /// one.
    private func statusList(for settings: AndroidDemands.Settings, now: UnixTime) -> StatusList? {
        if let known = statusList(), now.seconds - known.fetchedAt <= settings.statusSecondsMax {
            return known.list
        }
        // An older list still says what was revoked.
        return settings.onError == .forward ? statusList()?.list ?? .empty : nil
    }
}

extension VerifiedKeyAttestation {
    /// The version code of the app for which the key was made; `nil` where the system says none.
    fileprivate var version: Int64? {
        description.softwareEnforced.apps?.packages.first { $0.name == app.package }?.version
    }
}

extension AndroidDemands.Settings {
    fileprivate func accepts(version: Int64?) -> Bool {
        guard let versionMin else { return true }
        return version.map { $0 >= versionMin } ?? false
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

    /// Several steps have one reason here: the client can do the same about them, and
    /// `portcullis verify android` tells them apart.
    init(_ reason: KeyAttestationRefusal.Reason) {
        switch reason {
        case .malformed, .noAttestation: self = .attestationMalformed
        case .rootUnknown, .chainNames, .chainSignature, .chainExtended, .chainShape:
            self = .certificateUntrusted
        case .notYetValid, .expired: self = .certificateExpired
        case .revoked: self = .certificateRevoked
        case .challenge: self = .nonceMismatch
        case .levelMismatch, .softwareLevel, .securityLevel: self = .hardwareRefused
        case .noRootOfTrust, .bootState, .bootloaderUnlocked: self = .bootRefused
        case .origin, .keyKind, .purpose, .digest: self = .keyUnsuitable
        case .appUnknown: self = .appUnknown
        case .app: self = .appMismatch
        case .signer: self = .signerMismatch
        case .provisioning: self = .provisioningRefused
        case .osPatchLevel: self = .patchLevelRefused
        }
    }
}

extension ReceiptState {
    /// Takes the fields of an attestation's receipt.
    init(_ fields: ReceiptFields) {
        self.init(createdAt: fields.creationTime.seconds, expiresAt: fields.expirationTime?.seconds)
    }
}
