package import DeviceKey
package import Signatures

/// All that is stored about a key.
package struct KeyRecord: Hashable, Sendable {
    /// Whether the key may be used.
    package enum Status: Hashable, Sendable {
        case active
        /// Refused, since this second of Unix time.
        case revoked(at: Int64)
        /// Unknown to all, since this second of Unix time. The remaining row prevents a new
        /// enrolment.
        case deleted(at: Int64)
        /// The same, and of the key only its mark under this secret is left, which is the record's
        /// key id.
        case erased(at: Int64, under: ErasureSecret)

        package var standing: KeyStanding {
            switch self {
            case .active: .active
            case .revoked: .revoked
            case .deleted, .erased: .deleted
            }
        }
    }

    /// The way in which the key came here. The raw value is the word in exports.
    package enum Source: String, CaseIterable, Hashable, Sendable {
        /// By an attestation that the gateway verified.
        case enrolled
        /// By `keys import`.
        case imported
    }

    /// The most bytes of a context, as in ``RequestBinding/EnrolmentLines``.
    package static let contextBytesMax = 256

    package var keyID: KeyID
    package var platform = DevicePlatform.apple
    package var appID: String
    package var environment: KeyEnvironment
    package var publicKey: P256PublicKey
    package var counters = CounterState()
    /// The receipt as Apple made it: that of the attestation, or the last one that replaced it.
    package var receipt: [UInt8]?
    /// The state of the receipt; meaningless without one.
    package var receiptState = ReceiptState()
    /// The chain that attested it; `nil` for a key of Apple's, and for an imported key whose line
    /// did not have it.
    package var chain: ChainRecord?
    /// The app's context from the attestation, 1…256 bytes; `nil` for none.
    package var context: [UInt8]?
    /// Seconds since 1970; `nil` for an imported key whose line did not have it.
    package var enrolledAt: Int64?
    /// Second of Unix time of the last admitted assertion that was written; `nil` before the first.
    package var lastUsedAt: Int64?
    package var status = Status.active
    package var source = Source.enrolled
    /// Whether the counters are known to be the last ones. In no export.
    package var anchor = CounterAnchor.held

    /// The part of its risk that the table in memory keeps. An Android phone's is known once, at
    /// the enrolment.
    package var risk: KeyRisk {
        switch platform {
        case .apple: receiptState.risk
        case .android: KeyRisk(metric: chain?.certificatesIssued, at: enrolledAt)
        }
    }
}

extension KeyRecord {
    /// A key of an Apple device at its enrolment, without a receipt.
    package init(
        keyID: KeyID,
        appID: String,
        environment: KeyEnvironment,
        publicKey: P256PublicKey,
        enrolledAt: Int64?
    ) {
        self.keyID = keyID
        self.appID = appID
        self.environment = environment
        self.publicKey = publicKey
        self.enrolledAt = enrolledAt
    }

    /// A key that was just attested. Receipt, chain and context are to be added.
    ///
    /// - `now`: second of Unix time.
    package init<Attestation: AttestedKey>(
        attested: Attestation,
        publicKey: P256PublicKey,
        appID: String,
        environment: KeyEnvironment,
        now: Int64
    ) {
        self.init(
            keyID: attested.keyID,
            appID: appID,
            environment: environment,
            publicKey: publicKey,
            enrolledAt: now
        )
        platform = Attestation.platform
        counters = CounterState(highest: attested.initialCounter ?? .zero)
    }
}

/// Whether a key may be used. Unlike counters it may change both ways, but only by commands.
package enum KeyStanding: UInt8, Hashable, Sendable {
    case active
    /// Refused as a known key.
    case revoked
    /// Refused like an unknown key. It never comes back: if it were enrolled or imported again, its
    /// old assertions would be admitted once more.
    case deleted
}

/// What is stored of the chain of certificates that attested an Android phone's key.
///
/// It is only on disk. The serials are compared when a newer list of revoked certificates comes,
/// in one pass over the store, and no request needs them; in memory they would take more than all
/// else that is known of a key.
package struct ChainRecord: Hashable, Sendable {
    /// The most serials.
    package static let serialsMax = 10
    /// The most digits of a serial that is imported.
    package static let digitsMax = 128
    /// The longest ``listed``, in bytes.
    package static let listedBytesMax = 256

    /// The serial numbers of the certificates below the root, the leaf's first: hexadecimal in
    /// lower case without leading zeros, as `CertificateSerial` writes them.
    package var serials: [String]
    /// The number of certificates that Google gave the phone in the 30 days before; `nil` where
    /// the chain does not say. It is the key's risk metric.
    package var certificatesIssued: UInt32?
    /// The entry of Google's list for which the key is revoked, such as `c3574… REVOKED`. `nil`
    /// while it is not revoked, and when a command has revoked it.
    package var listed: String?

    package init(serials: [String], certificatesIssued: UInt32?, listed: String? = nil) {
        self.serials = serials
        self.certificatesIssued = certificatesIssued
        self.listed = listed
    }

    /// Reads ``serialText``.
    package init(serialText: String, certificatesIssued: UInt32?, listed: String?) {
        self.init(
            serials: serialText.split(separator: " ").map(String.init),
            certificatesIssued: certificatesIssued,
            listed: listed
        )
    }

    /// The serials, separated by blanks, as stores and exports have them.
    package var serialText: String { serials.joined(separator: " ") }
}

/// A stored key in the form that a journal gives to the table.
package struct KeyRow: Sendable {
    /// The journal's number of the key.
    package let row: Int64
    package var keyID: KeyID
    package var platform = DevicePlatform.apple
    package let publicKey: P256PublicKey
    package let app: AppNumber
    package let environment: KeyEnvironment
    package var counters: CounterState
    package let standing: KeyStanding
    /// The app's context from the enrolment; `nil` for none.
    package var context: [UInt8]?
    /// The risk of the device: see ``KeyRecord/risk``.
    package var risk = KeyRisk.unknown
    /// Whether the counters are known to be the last ones.
    package var anchor = CounterAnchor.held
    /// The secret of an erased key, whose mark is the key id of this row; `nil` for other keys.
    package var erasure: ErasureSecret?
}

/// The risk metric of a key and its day, as the table in memory keeps it: 4 bytes.
///
/// Apple's metric is about the number of the app's keys that the device has had attested within 30
/// days. That of an Android phone is the number of certificates that Google gave it within 30 days.
/// Rules compare a metric with a limit, so a value above ``metricMax`` is kept as ``metricMax``.
package struct KeyRisk: Hashable, Sendable {
    /// The highest metric that is distinguished from higher ones.
    package static let metricMax: UInt16 = .max - 1
    private static let none: UInt16 = .max
    private static let daySeconds: Int64 = 86_400
    /// The most days that a metric may be in the future, since clocks differ.
    private static let aheadDaysMax: Int64 = 7

    private let rawMetric: UInt16
    /// Days since 1970, to the year 2149; 0 when no receipt with a metric has come yet. Of an
    /// Android phone's key it is the day of the enrolment, also without a metric.
    package let day: UInt16

    package static let unknown = KeyRisk(metric: nil, at: nil)

    /// - Parameters:
    ///   - metric: `nil` when the receipt had no valid one.
    ///   - second: the creation of the receipt that had it, or should have had it; `nil` without a
    ///     receipt.
    package init(metric: UInt32?, at second: Int64?) {
        let day = max(second ?? 0, 0) / Self.daySeconds
        self.day = UInt16(exactly: day) ?? .max
        rawMetric =
            day == 0
            ? Self.none
            : metric.map { UInt16(min($0, UInt32(Self.metricMax))) }
                ?? Self.none
    }

    /// The metric; `nil` when it is unknown.
    package var metric: UInt16? { rawMetric == Self.none ? nil : rawMetric }

    /// The metric, when it is at most this number of days old. A metric of the future, as an import
    /// may bring it, counts as unknown.
    ///
    /// - `now`: second of Unix time.
    package func metric(at now: Int64, daysMax: Int64) -> UInt16? {
        let age = now / Self.daySeconds - Int64(day)
        return age >= -Self.aheadDaysMax && age <= daysMax ? metric : nil
    }

    func isNewer(than other: KeyRisk) -> Bool { day > other.day }

    /// Whether this value is of a later day, and not in the future.
    ///
    /// - `now`: second of Unix time.
    func isNewer(than other: KeyRisk, at now: Int64) -> Bool {
        isNewer(than: other) && Int64(day) <= now / Self.daySeconds + Self.aheadDaysMax
    }
}
