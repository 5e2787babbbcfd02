import AppAttest
import Cryptography
import Encodings
import SoftwareAuthenticator
import TestSupport

/// Makes the vectors that the repository keeps in Tests/Vectors: one for each class of genuine
/// vector, with what is odd about the class.
///
/// Keys, names, times and headers come from a seed and are the same each time. Signatures are not,
/// so an object made anew differs from the one that is kept and verifies alike.
struct SoftwareVectors {
    static let seed = "software-vectors"
    static let appID = "ZYXWV98765.com.example.vectors"

    /// An attestation to make.
    struct Attestation {
        let name: String
        let note: String
        let shape: DeviceShape
        let environment: AttestationEnvironment
        var isRaw = false
        var hasDamagedReceipt = false
        /// What the tests expect of the leaf and of the extensions: header lines.
        let says: [(name: String, value: String)]
    }

    /// An assertion to make.
    struct Assertion {
        let name: String
        let note: String
        let shape: DeviceShape
        let counter: UInt32
        let oddity: AssertionDamage
        let says: [(name: String, value: String)]
    }

    private let time: UnixTime
    private let authority: SoftwareAuthority

    init() {
        guard let time = UnixTime(iso8601: "2026-03-01T10:00:00.25Z"),
            let made = UnixTime(iso8601: "2026-02-01T00:00:00Z")
        else { preconditionFailure("SoftwareVectors: constants") }
        self.time = time
        authority = SoftwareAuthority(seed: Array(Self.seed.utf8), madeAt: made)
    }

    var rootPEM: String { authority.rootPEM }

    private static let iPhoneList =
        "MEMMAjExMD0wCgwDb2tkoQMBAf8wCQwCb2GhAwEB/zALDARvc2duoQMBAf8wCwwEb2RlbKEDAQH/MAoMA29ja6ED"
        + "AQH/"
    private static let macList =
        "MEAMAjExMDowCQwCb2uhAwEB/zAJDAJvYaEDAQH/MAsMBG9kZWyhAwEB/zAVDARvc2duoAYMBHJzZWMwBaYDAgEB"

    static let attestations: [Attestation] = [
        Attestation(
            name: "ios-14-development",
            note: "iOS 14 and 15: the leaf names the version alone",
            shape: .iOS14,
            environment: .development,
            says: [("os-version", "14.2")]
        ),
        Attestation(
            name: "ios-14-production",
            note: "the same from the other environment: another AAGUID",
            shape: .iOS14,
            environment: .production,
            says: [("os-version", "14.2")]
        ),
        Attestation(
            name: "ios-18-development",
            note: "iOS 16 to 18: the leaf names version and build",
            shape: .beforeTwentySeven,
            environment: .development,
            says: [("os-version", "18.2"), ("os-build", "22C152")]
        ),
        Attestation(
            name: "ios-18-production-raw",
            note: "the app hands over the challenge itself, as in Apple's sample of 2024",
            shape: .beforeTwentySeven,
            environment: .production,
            isRaw: true,
            says: [("os-version", "18.2"), ("os-build", "22C152")]
        ),
        Attestation(
            name: "ios-26-development",
            note: "iOS 26: the leaf names the platform and has an access control list",
            shape: .iOS26,
            environment: .development,
            says: [
                ("os-version", "26.3"), ("os-build", "23D127"), ("platform", "iphoneos"),
                ("access-control", iPhoneList),
            ]
        ),
        Attestation(
            name: "ios-26-damaged-receipt",
            note: "the attestation is good, a byte of its receipt's certificate was altered",
            shape: .iOS26,
            environment: .development,
            hasDamagedReceipt: true,
            says: [
                ("os-version", "26.3"), ("os-build", "23D127"), ("platform", "iphoneos"),
                ("access-control", iPhoneList),
            ]
        ),
        Attestation(
            name: "ios-27-production-raw-flags-40",
            note: "Apple's sample of 2026: extensions, although the flags do not say so",
            shape: .iOS27Preview(category: .operatingSystem, bundleVersion: "1"),
            environment: .production,
            isRaw: true,
            says: [
                ("os-version", "27.0"), ("os-build", "24A325b"), ("platform", "iphoneos"),
                ("access-control", iPhoneList), ("bundle-version", "1"), ("category", "01000000"),
            ]
        ),
        Attestation(
            name: "ios-27-development",
            note: "iOS 27.0.1: extensions, flags 0xC0",
            shape: .iOS27(category: .development, bundleVersion: "1314"),
            environment: .development,
            says: [
                ("os-version", "27.0.1"), ("os-build", "24A446"), ("platform", "iphoneos"),
                ("access-control", iPhoneList), ("bundle-version", "1314"),
                ("category", "03000000"),
            ]
        ),
        Attestation(
            name: "macos-27-production",
            note: "macOS 27: the code directory's hash, no bundle version, Apple's list for Macs",
            shape: .macOS27(category: .developerID, bundleVersion: nil),
            environment: .production,
            says: [
                ("os-version", "27.0.1"), ("os-build", "24A446"), ("platform", "macosx"),
                ("access-control", macList), ("category", "06000000"),
            ]
        ),
    ]

    static let assertions: [Assertion] = [
        Assertion(
            name: "ios-14",
            note: "before iOS 27: 37 bytes, flags 0x40 although no attested credential follows",
            shape: .iOS14,
            counter: 1,
            oddity: .lowS,
            says: []
        ),
        Assertion(
            name: "ios-18-high-s",
            note: "the second assertion of a key; s above half the order, as in every second one",
            shape: .beforeTwentySeven,
            counter: 2,
            oddity: .highS,
            says: []
        ),
        Assertion(
            name: "ios-27",
            note: "iOS 27.0.1: an extension map, flags 0xC0",
            shape: .iOS27(category: .development, bundleVersion: "1314"),
            counter: 1,
            oddity: .highS,
            says: [("bundle-version", "1314"), ("category", "03000000")]
        ),
        Assertion(
            name: "macos-27-large-counter",
            note: "macOS 27: the code directory's hash; a counter of more than two bytes",
            shape: .macOS27(category: .developerID, bundleVersion: nil),
            counter: 70_000,
            oddity: .lowS,
            says: [("category", "06000000")]
        ),
    ]

    /// Refreshed receipts: name, note, metric, whether attributes stand beside the signature.
    static let receipts: [(name: String, note: String, metric: UInt32, isOf2020: Bool)] = [
        (
            "refreshed-2020",
            "August to October 2020: signed attributes, and the bare content signed",
            2, true
        ),
        ("refreshed", "later ones: no attributes", 15, false),
        ("refreshed-metric-0", "a metric of one digit that is zero", 0, false),
    ]
}

extension SoftwareVectors {
    private func key(
        _ name: String,
        _ shape: DeviceShape,
        _ environment: AttestationEnvironment
    ) -> SoftwareKey {
        SoftwareDevice(
            authority: authority,
            appID: Self.appID,
            environment: environment,
            shape: shape
        ).makeKey(seed: Array(name.utf8))
    }

    private func head(_ key: SoftwareKey, _ note: String) -> [(name: String, value: String)] {
        [
            ("expect", "accept"),
            ("source", "SoftwareAuthenticator, seed \(Self.seed), made 2026-03-01"),
            ("note", note), ("app-id", Self.appID), ("key-id", key.keyID.base64),
            ("public-key", Base64.text(key.publicKey.x963)),
        ]
    }

    func file(_ plan: Attestation) throws -> VectorFile {
        let key = key(plan.name, plan.shape, plan.environment)
        let challenge = Array("challenge of \(plan.name)".utf8)
        let hash = plan.isRaw ? challenge : SHA256.digest(of: challenge).array
        var object = key.attestation(clientDataHash: hash, at: time)
        if plan.hasDamagedReceipt {
            // The last byte of the signer's certificate is one of its signature.
            let der = authority.receiptSigner.der
            guard let place = object.firstRange(of: der) else {
                throw VectorFile.Malformed(description: "no signer in the receipt")
            }
            object[place.upperBound - 1] ^= 1
        }
        let header =
            head(key, plan.note) + [
                ("environment", plan.environment.rawValue), ("challenge", Base64.text(challenge)),
                ("hash-formed-as", plan.isRaw ? "raw" : "sha256(challenge)"),
                ("client-data-hash", Base64.text(hash)), ("verify-at", time.iso8601),
                ("leaf-not-before", "2026-02-28T10:00:00Z"),
                ("leaf-not-after", "2026-03-03T10:00:00Z"),
                ("receipt-chain", plan.hasDamagedReceipt ? "bad" : "good"),
            ] + plan.says
        return VectorFile(header: header, object: Base64.text(object))
    }

    func file(_ plan: Assertion) -> VectorFile {
        var key = key(plan.name, plan.shape, .production)
        let data = Array(#"{"order": 7, "note": "\#(plan.name)"}"#.utf8)
        key.counter = SignCounter(rawValue: plan.counter - 1)
        let object = key.assertion(clientData: data, damage: plan.oddity)
        let header =
            head(key, plan.note) + [
                ("counter", String(plan.counter)), ("client-data", Base64.text(data)),
                ("client-data-hash", Base64.text(SHA256.digest(of: data).array)),
            ] + plan.says
        return VectorFile(header: header, object: Base64.text(object))
    }

    func file(
        _ plan: (name: String, note: String, metric: UInt32, isOf2020: Bool)
    ) -> VectorFile {
        let key = key(plan.name, .beforeTwentySeven, .production)
        let hash = SHA256.digest(of: Array(plan.name.utf8)).array
        let kind = ReceiptKind.refreshed(riskMetric: plan.metric)
        let object =
            plan.isOf2020
            ? key.receipt(kind, clientDataHash: hash, at: time, replacing: [:], isOf2020: true)
            : key.receipt(kind, clientDataHash: hash, at: time)
        let header =
            head(key, plan.note) + [
                ("receipt-type", "RECEIPT"), ("creation-time", time.iso8601),
                ("risk-metric", String(plan.metric)),
                ("not-before", time.advanced(bySeconds: 86_400).iso8601),
                ("expiration", time.advanced(bySeconds: 90 * 86_400).iso8601),
            ]
        return VectorFile(header: header, object: Base64.text(object))
    }

    /// Every file by its path in Tests/Vectors.
    func files() throws -> [(path: String, file: VectorFile)] {
        try Self.attestations.map { ("attestations/\($0.name).txt", try file($0)) }
            + Self.assertions.map { ("assertions/\($0.name).txt", file($0)) }
            + Self.receipts.map { ("receipts/\($0.name).txt", file($0)) }
    }
}
