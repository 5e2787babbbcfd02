package import DeviceKey
package import Signatures

/// All that is stored of a key.
package struct KeyRecord: Hashable, Sendable {
    /// Whether the key may be used.
    package enum Status: Hashable, Sendable {
        case active
        /// Refused, since this second of Unix time.
        case revoked(at: Int64)
        /// Unknown to all, since this second of Unix time. What is left of it keeps it from being
        /// enrolled again.
        case deleted(at: Int64)

        package var standing: KeyStanding {
            switch self {
            case .active: .active
            case .revoked: .revoked
            case .deleted: .deleted
            }
        }
    }

    /// How the key came here. The raw value is the word in exports.
    package enum Source: String, CaseIterable, Hashable, Sendable {
        /// By an attestation that the gateway verified.
        case enrolled
        /// By `keys import`.
        case imported
    }

    /// The most bytes of a context, as in ``RequestBinding/EnrolmentLines``.
    package static let contextBytesMax = 256

    package var keyID: KeyID
    /// Whose attestation vouches for it. A store need not keep it as long as there is one platform.
    package var platform: DevicePlatform
    package var appID: String
    package var environment: KeyEnvironment
    package var publicKey: P256PublicKey
    package var counters: CounterState
    /// The receipt, as Apple made it: the attestation's, or the last one that took its place.
    package var receipt: [UInt8]?
    /// What is known of the receipt; without one it says nothing.
    package var receiptState: ReceiptState
    /// What the app has handed in with the attestation, 1…256 bytes; `nil` for nothing.
    package var context: [UInt8]?
    /// Seconds since 1970; `nil` for an imported key whose line did not say it.
    package var enrolledAt: Int64?
    /// Second of Unix time of the last admitted assertion that was written; `nil` before the first.
    package var lastUsedAt: Int64?
    package var status: Status
    package var source: Source

    /// A key, by default as it is at enrolment.
    package init(
        keyID: KeyID,
        platform: DevicePlatform = .apple,
        appID: String,
        environment: KeyEnvironment,
        publicKey: P256PublicKey,
        counters: CounterState = CounterState(),
        receipt: [UInt8]? = nil,
        receiptState: ReceiptState = ReceiptState(),
        context: [UInt8]? = nil,
        enrolledAt: Int64?,
        lastUsedAt: Int64? = nil,
        status: Status = .active,
        source: Source = .enrolled
    ) {
        self.keyID = keyID
        self.platform = platform
        self.appID = appID
        self.environment = environment
        self.publicKey = publicKey
        self.counters = counters
        self.receipt = receipt
        self.receiptState = receiptState
        self.context = context
        self.enrolledAt = enrolledAt
        self.lastUsedAt = lastUsedAt
        self.status = status
        self.source = source
    }

    /// A key that was just attested.
    ///
    /// - `now`: second of Unix time.
    package init<Attestation: AttestedKey>(
        attested: Attestation,
        publicKey: P256PublicKey,
        appID: String,
        environment: KeyEnvironment,
        receipt: [UInt8]?,
        receiptState: ReceiptState = ReceiptState(),
        context: [UInt8]?,
        now: Int64
    ) {
        self.init(
            keyID: attested.keyID,
            platform: Attestation.platform,
            appID: appID,
            environment: environment,
            publicKey: publicKey,
            counters: CounterState(highest: attested.initialCounter ?? .zero),
            receipt: receipt,
            receiptState: receiptState,
            context: context,
            enrolledAt: now
        )
    }
}
