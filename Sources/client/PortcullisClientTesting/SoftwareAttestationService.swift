internal import Encodings
public import Foundation
public import PortcullisClient

/// App Attest in software, where a device has none: in the Simulator, in continuous integration, on
/// Linux.
///
/// It follows Apple's rules: a key is attested once, and signs only when it was attested; both are
/// `AttestationServiceError.invalidKey` otherwise. With a folder, keys outlive the process, and
/// processes that use the same folder share them, as an app and its extensions share the keys of a
/// device. Removing a file of the folder is a lost key.
///
/// Its objects end in the root of a ``TestAuthority``. No gateway accepts them but one whose
/// configuration names that root in `test_root`.
public actor SoftwareAttestationService: AttestationService {
    /// What a build signs into each object since iOS 27, for gateways that ask for it.
    public struct Build: Hashable, Sendable {
        /// `apple_validation_category_01`: 2 is TestFlight, 4 is the App Store.
        public let validationCategory: UInt32
        /// CFBundleVersion.
        public let bundleVersion: String

        /// A build of this category and version.
        public init(validationCategory: UInt32, bundleVersion: String) {
            self.validationCategory = validationCategory
            self.bundleVersion = bundleVersion
        }
    }

    /// Always `true`.
    public nonisolated let isSupported = true

    private let app: SimulatedApp
    private let authority: TestAuthority
    private let folder: SimulatedKeyFolder?
    /// The keys where there is no folder.
    private var keys: [String: SimulatedKey] = [:]

    /// A service for one app.
    ///
    /// - Parameters:
    ///   - appID: as in the gateway's configuration: prefix, full stop, bundle identifier.
    ///   - authority: whose root the gateway trusts.
    ///   - folder: where keys are kept, made if need be; `nil` for keys that end with the process.
    ///     The files hold private keys.
    ///   - device: what kind of device the keys are of.
    ///   - build: what is said of the build; `nil` is a system before iOS 27.
    /// - Throws: when the folder can't be made.
    public init(
        appID: String,
        authority: TestAuthority,
        folder: URL? = nil,
        device: Device = .iPhone,
        build: Build? = nil
    ) throws {
        app = SimulatedApp(appID: appID, device: device, build: build)
        self.authority = authority
        self.folder = try folder.map { try SimulatedKeyFolder($0) }
    }

    /// Makes a key on P-256.
    public func generateKey() throws(AttestationServiceError) -> String {
        let made = SimulatedKey()
        return try answer { () throws in
            let keyID = try made.keyID
            try change(keyID) { $0 = made }
            return keyID
        }
    }

    /// Attests a key that was not attested yet.
    public func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) throws(AttestationServiceError) -> Data {
        try answer {
            try change(keyID) { key in
                guard var known = key, known.state == .generated else {
                    throw AttestationServiceError.invalidKey
                }
                let object = try known.attestation(
                    for: app,
                    clientDataHash: clientDataHash,
                    by: authority,
                    now: Date()
                )
                known.state = .attested
                key = known
                return object
            }
        }
    }

    /// Signs with a key that was attested. Its counter goes up by one.
    public func generateAssertion(
        _ keyID: String,
        clientDataHash: Data
    ) throws(AttestationServiceError) -> Data {
        let signer: SimulatedKey = try answer {
            try change(keyID) { key in
                guard var known = key, known.state == .attested else {
                    throw AttestationServiceError.invalidKey
                }
                known.counter &+= 1
                key = known
                return known
            }
        }
        return try answer { try signer.assertion(for: app, clientDataHash: clientDataHash) }
    }

    private func change<Result>(
        _ keyID: String,
        _ change: (inout SimulatedKey?) throws -> Result
    ) throws -> Result {
        // A key id names a file, so it has to be one.
        guard Data(base64Encoded: keyID)?.count == 32 else {
            throw AttestationServiceError.invalidKey
        }
        guard let folder else { return try change(&keys[keyID]) }
        return try folder.change(keyID, change)
    }

    /// Translates what is no error of the service, such as a full disk.
    private func answer<Result>(
        _ body: () throws -> Result
    ) throws(AttestationServiceError) -> Result {
        do {
            return try body()
        } catch let error as AttestationServiceError {
            throw error
        } catch {
            throw .unknownSystemFailure
        }
    }
}

extension SoftwareAttestationService {
    /// Which kind of device a key is of. Its certificate says so.
    ///
    /// May grow: a `switch` over it has an `@unknown default`.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive(warn)
    #endif
    public enum Device: Hashable, Sendable {
        /// An iPhone, an iPad, or another device that is no Mac.
        case iPhone
        /// A Mac, with Full Security and System Integrity Protection: gateways ask for that where
        /// an app entry says `platform: macos`.
        case mac

        /// What the leaf has because of it: extensions of Apple's by their numbers, each with its
        /// values by tag.
        var extensions: [(number: UInt32, values: [(tag: UInt32, value: [UInt8])])] {
            switch self {
            case .iPhone: [(7, Self.system("18.2", "22C152", platform: "iphoneos"))]
            case .mac:
                [
                    (7, Self.system("27.0.1", "24A446", platform: "macosx")),
                    (6, [(3, Self.accessControl)]),
                ]
            }
        }

        private static func system(
            _ version: String,
            _ build: String,
            platform: String
        ) -> [(tag: UInt32, value: [UInt8])] {
            [(1400, Array(version.utf8)), (1403, Array(build.utf8)), (1026, Array(platform.utf8))]
        }

        /// The access control list that Apple prints for Macs ("Validating apps", step 4).
        private static var accessControl: [UInt8] {
            let granted = DEREncoder.element(.explicit(1), DEREncoder.element(.boolean, [0xFF]))
            let signing = DEREncoder.sequence([
                text("osgn"), DEREncoder.element(.explicit(0), text("rsec")),
                DEREncoder.sequence([DEREncoder.element(.explicit(6), DEREncoder.integer(1))]),
            ])
            let rights = ["ok", "oa", "odel"].map { DEREncoder.sequence([text($0), granted]) }
            return DEREncoder.sequence([text("11"), DEREncoder.sequence(rights + [signing])])
        }

        private static func text(_ text: String) -> [UInt8] {
            DEREncoder.element(.utf8String, Array(text.utf8))
        }
    }
}
