// A server's use of KeyAttestation in one type, `PhoneRegistry`, compiled as other packages'
// code is: with public names alone, under MemberImportVisibility, in one file with swift-crypto.
//
// Two packages compile it: Tests/Sample, which depends on this one from outside, and this one,
// whose tests run it and compare it with the documentation.
import Crypto
public import Foundation
public import KeyAttestation

/// What a server does with Android's key attestation, without the HTTP around it: it gives out
/// challenges, enrols keys, and admits requests.
///
/// The code blocks of KeyAttestation's documentation are parts of this file.
public struct PhoneRegistry {
    /// Why a request is turned away.
    public enum Failure: Error {
        /// The challenge was not given out here, or is spent.
        case challengeUnknown
        /// The key id was never enrolled, or is no key id.
        case keyUnknown
        /// Google has revoked a certificate of the phone.
        case revoked
        /// Not signed by the key over this request, or with a number that is not the next.
        case signature
    }

    private let app: ExpectedAndroidApp
    private let roots: [X509Certificate]
    private var statusList: StatusList
    private var challenges: Set<Data> = []
    private var records: [KeyID: KeyAttestationRecord] = [:]

    /// A registry of the keys of one app, on phones that these roots vouch for.
    public init(app: ExpectedAndroidApp, roots: [X509Certificate], statusList: StatusList) {
        (self.app, self.roots, self.statusList) = (app, roots, statusList)
    }

    /// A registry of the keys of an app, on genuine phones.
    ///
    /// - signer: SHA-256 of the app signing certificate, 32 bytes.
    public static func ofPlayStore(
        _ package: String,
        signer: [UInt8],
        statusList: Data
    ) throws -> PhoneRegistry {
        PhoneRegistry(
            app: ExpectedAndroidApp(package: package, signers: [signer], policy: .standard),
            roots: GoogleRoots.all,
            statusList: try StatusList(json: Array(statusList))
        )
    }

    /// Takes a newer list.
    public mutating func update(statusList: Data) throws {
        self.statusList = try StatusList(json: Array(statusList))
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
        chain: [Data],
        challenge: Data,
        now: Date
    ) throws -> KeyAttestationRecord {
        guard challenges.remove(challenge) != nil else { throw Failure.challengeUnknown }

        let verified = try UnverifiedKeyAttestation(chain: chain.map { Array($0) }).verified(
            challenge: Array(challenge),
            app: app,
            roots: roots,
            statusList: statusList,
            at: UnixTime(seconds: Int64(now.timeIntervalSince1970))
        )
        // A key that is known keeps its counter: a repeated attestation must not reset it.
        if let known = records[verified.keyID] { return known }
        records[verified.keyID] = verified.record
        return verified.record
    }

    /// Admits a request that is signed together with a challenge.
    public mutating func admit(
        signature: String,
        keyID: String,
        challenge: Data,
        body: Data
    ) throws {
        guard let keyID = KeyID(base64: keyID), var record = records[keyID] else {
            throw Failure.keyUnknown
        }
        guard statusList.revoked(among: record.serials) == nil else { throw Failure.revoked }
        // The app computes the same: SHA-256 of the challenge and the body.
        var hash = SHA256()
        hash.update(data: challenge)
        hash.update(data: body)

        guard let signature = UnverifiedKeySignature(Array(signature.utf8)),
            signature.isValid(
                clientDataHash: Array(hash.finalize()),
                package: record.package,
                key: record.publicKey,
                after: record.counter
            )
        else { throw Failure.signature }
        // The signature comes first: only who holds the key can spend a challenge.
        guard challenges.remove(challenge) != nil else { throw Failure.challengeUnknown }
        // In a store that others share, compare and set the counter in one atomic step.
        record.counter = signature.counter
        records[keyID] = record
    }

    /// All records, for a store that keeps JSON.
    public func export() throws -> Data {
        try JSONEncoder().encode(Array(records.values))
    }

    /// Reads what ``export()`` wrote.
    public mutating func restore(_ data: Data) throws {
        for record in try JSONDecoder().decode([KeyAttestationRecord].self, from: data) {
            records[record.keyID] = record
        }
    }
}
