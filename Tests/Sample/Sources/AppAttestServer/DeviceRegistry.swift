public import AppAttest
import Crypto
public import Foundation

/// What a server does with App Attest, without the HTTP around it: it gives out challenges, enrols
/// keys, and admits requests.
///
/// The code blocks of AppAttest's documentation are parts of this file.
public struct DeviceRegistry {
    /// Why a request is turned away before anything is verified.
    public enum Failure: Error {
        /// The challenge was not given out here, or is spent.
        case challengeUnknown
        /// The key id was never enrolled, or is no key id.
        case keyUnknown
    }

    private let app: ExpectedApp
    private let attestationRoots: [X509Certificate]
    private let receiptRoots: [X509Certificate]
    private var challenges: Set<Data> = []
    private var records: [KeyID: AttestationRecord] = [:]

    /// A registry of the keys of one app.
    ///
    /// For genuine devices the roots are Apple's, which are the defaults. A test with a software
    /// device passes the root of its own authority.
    public init(
        app: ExpectedApp,
        attestationRoots: [X509Certificate] = [AppleRoots.appAttestation],
        receiptRoots: [X509Certificate] = [AppleRoots.rootG3]
    ) {
        self.app = app
        self.attestationRoots = attestationRoots
        self.receiptRoots = receiptRoots
    }

    /// A registry of the production keys of an app, on genuine devices, of every build.
    public static func ofAppStore(_ appID: String) -> DeviceRegistry {
        DeviceRegistry(
            app: ExpectedApp(
                id: appID,
                environments: [.production],
                isMacOS: false,
                builds: .any
            ),
            attestationRoots: [AppleRoots.appAttestation],
            receiptRoots: [AppleRoots.rootG3]
        )
    }

    /// Gives out a challenge, which is good once.
    public mutating func makeChallenge() -> Data {
        // Swift's generator is one for secrets on every system.
        let challenge = Data((0..<32).map { _ in UInt8.random(in: .min ... .max) })
        challenges.insert(challenge)
        return challenge
    }

    /// Enrols a key: `POST /keys`.
    public mutating func enrol(
        attestation: Data,
        keyID: String,
        challenge: Data,
        now: Date
    ) throws -> AttestationRecord {
        guard challenges.remove(challenge) != nil else { throw Failure.challengeUnknown }
        guard let keyID = KeyID(base64: keyID) else { throw Failure.keyUnknown }

        let verified = try UnverifiedAttestation(bytes: attestation).verified(
            challenge: challenge,
            keyID: keyID,
            apps: [app],
            roots: attestationRoots,
            at: UnixTime(now)
        )
        // A key that is known keeps its counter: a repeated attestation must not reset it.
        if let known = records[keyID] { return known }
        records[keyID] = verified.record
        return verified.record
    }

    /// Admits a request that is signed together with a challenge.
    public mutating func admit(
        assertion: Data,
        keyID: String,
        challenge: Data,
        body: Data
    ) throws {
        guard let keyID = KeyID(base64: keyID), var record = records[keyID] else {
            throw Failure.keyUnknown
        }
        // The app computes the same: SHA-256 of the challenge and the body.
        var hash = SHA256()
        hash.update(data: challenge)
        hash.update(data: body)

        let verified = try UnverifiedAssertion(bytes: assertion).verified(
            clientDataHash: hash.finalize(),
            key: record.publicKey,
            app: AppIDHash(appID: record.appID),
            after: record.counter
        )
        // The signature comes first: only who holds the key can spend a challenge.
        guard challenges.remove(challenge) != nil else { throw Failure.challengeUnknown }
        try verified.checkBuild(app.builds)
        // In a store that others share, compare and set the counter in one atomic step.
        record.counter = verified.counter
        records[keyID] = record
    }

    /// How many keys the device has had attested, about, when Apple last said so; `nil` for a
    /// receipt that came with the attestation.
    public func risk(of receipt: Data, keyID: String) throws -> UInt32? {
        guard let keyID = KeyID(base64: keyID), let record = records[keyID] else {
            throw Failure.keyUnknown
        }
        let verified = try UnverifiedReceipt(bytes: receipt).verified(
            appIDs: [record.appID],
            key: record.publicKey,
            roots: receiptRoots,
            freshness: nil
        )
        return verified.fields.riskMetric
    }

    /// All records, for a store that keeps JSON.
    public func export() throws -> Data {
        try JSONEncoder().encode(Array(records.values))
    }

    /// Takes back what ``export()`` wrote.
    public mutating func restore(_ data: Data) throws {
        for record in try JSONDecoder().decode([AttestationRecord].self, from: data) {
            records[record.keyID] = record
        }
    }
}
