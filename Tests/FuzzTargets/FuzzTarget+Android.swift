import AppAttest
import ConfigurationReading
import Encodings
import KeyAttestation
import KeyStore
import OutboundCalls
import Parties
import Rules
import Signatures
import SoftwareAuthenticator
import Synchronization
import Tokens
import Verification

extension FuzzTarget {
    /// Certificates in DER, one after the other. Only Google's own sample of a phone verifies
    /// (android/keyattestation, testdata/caiman/sdk36/TEE_EC_RKP.pem, Apache-2.0; the other chains
    /// and descriptions of the corpora are from there, too).
    static func keyChain(_ bytes: [UInt8]) {
        let chain = pieces(bytes)
        let summary = ChainSummary(chain: chain, roots: GoogleRoots.all)
        do throws(KeyAttestationRefusal) {
            let verified = try UnverifiedKeyAttestation(chain: chain).verified(
                challenge: Array("d668d763-6118-4ca6-94b2-e6cd9ed7e4e4".utf8),
                app: caimanApp,
                roots: GoogleRoots.all,
                statusList: .empty,
                at: UnixTime(seconds: 1_758_900_680)
            )
            demand(verified.keyID == caimanKeyID, "no other key verifies")
            demand(
                verified.serials == summary.serials.prefix(4).map { $0 },
                "a chain has the serials that it shows"
            )
        } catch {
            demand(!error.detail.isEmpty, "a refusal says why")
        }
    }

    private static let caimanApp = ExpectedAndroidApp(
        package: "com.google.android.attestation",
        signers: [
            Hex.decode("103938ee4537e59e8ee792f654504fb8346fc6b346d0bbc4415fc339fcfc8ec1") ?? []
        ],
        policy: .standard
    )

    private static let caimanKeyID = Base64.decode(
        "BPpst8X48X4v8ewyg7HXbDg0hsJfoWrUaDpQH+oINfUgHF0uvyxsVvbJSoJdqmUo"
            + "ErMizWvhcOk2Te0mD/3R2eo="
    ).flatMap { P256PublicKey(x963: $0) }.map { KeyID(of: $0) }

    /// Documents of `POST …/keys` with a phone's chain. The first byte says what the others are: a
    /// document, the certificates of a good one, or bits of it that change. No other key than the
    /// genuine one may enrol.
    static func enrolment(_ bytes: [UInt8]) {
        guard let first = bytes.first, let stand = EnrolmentStand.shared else { return }
        let rest = Array(bytes.dropFirst())
        switch first {
        case UInt8(ascii: "c"): stand.feed(stand.document(pieces(rest)))
        case UInt8(ascii: "x"):
            var changed = stand.genuine
            for (index, byte) in rest.prefix(changed.count).enumerated() { changed[index] ^= byte }
            stand.feed(changed)
        default: stand.feed(rest)
        }
        demand(stand.feed(stand.genuine), "the genuine document stays good")
    }

    /// What DER has one after the other, and the rest as one more piece.
    private static func pieces(_ bytes: [UInt8]) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var cursor = DERCursor(0..<bytes.count)
        while !cursor.isAtEnd {
            let start = cursor.offset
            guard (try? cursor.next(in: bytes.span)) != nil else { break }
            pieces.append(Array(bytes[start..<cursor.offset]))
        }
        if cursor.offset < bytes.count { pieces.append(Array(bytes[cursor.offset...])) }
        return pieces
    }

    /// The extension of a leaf.
    static func keyDescription(_ bytes: [UInt8]) {
        do throws(DERError) {
            let description = try KeyDescription(bytes)
            demand(description.challenge.count <= bytes.count, "a challenge lies in the bytes")
        } catch {
            demand((0...bytes.count).contains(error.offset), "a fault lies in the bytes")
        }
    }

    /// A status list and its copy on disk, a policy, and what a key signs.
    static func keyTexts(_ bytes: [UInt8]) {
        let title = KnownStatusList.copyTitle
        if let copy = FetchedCopy(bytes, title: title) {
            demand(FetchedCopy(copy.bytes, title: title) == copy, "a copy reads again")
            _ = KnownStatusList(copy)
        }
        if let list = try? StatusList(json: bytes) {
            demand(list.count * 4 <= bytes.count, "an entry has bytes")
        }
        if let signature = UnverifiedKeySignature(bytes) {
            let text = String(decoding: bytes, as: UTF8.self)
            let head = "v1.\(signature.counter.rawValue)."
            demand(text.hasPrefix(head), "a counter has one spelling")
        }
        var options = AndroidTrial.Options()
        options.app = "com.example.shop"
        options.signers = [String(repeating: "0", count: 64)]
        options.at = "now"
        options.policy = String(decoding: bytes, as: UTF8.self)
        _ = try? AndroidTrial(options, now: UnixTime(seconds: 0)).report(on: bytes)
    }
}

/// The enrolment of one app, a challenge, and a phone's document for it.
private final class EnrolmentStand: Sendable {
    static let shared = try? EnrolmentStand()

    private static let now = UnixTime(seconds: 1_800_000_000)
    private let enrolment: Enrolment
    private let key: SoftwareKey
    private let challenge: String
    let genuine: [UInt8]
    /// Nanoseconds: so far apart that no rate is reached.
    private let tick = Atomic<UInt64>(1 << 40)

    private init() throws {
        let authority = SoftwareAuthority(seed: Array("fuzz".utf8), madeAt: Self.now)
        let phone = SoftwarePhone()
        let device = SoftwareDevice(
            authority: authority,
            package: "com.example.shop",
            phone: phone
        )
        key = device.makeKey(seed: Array("phone".utf8))
        var settings = AndroidDemands.Settings()
        settings.signers = [SoftwarePhone.signer]
        var app = AppPolicy(id: "com.example.shop", environments: [])
        app.testRoots = [authority.root]
        app.android = AndroidDemands(settings)
        let secret = [UInt8](repeating: 7, count: 32)
        let issuer = ChallengeIssuer(
            secrets: .init(own: secret, enrolment: secret),
            epoch: 1
        )
        let list = DatedStatusList(.empty, fetchedAt: Self.now.seconds)
        var admission = EnrolmentAdmission.Settings()
        admission.perAttester = nil
        enrolment = Enrolment(
            KeyAttestor(apps: [app], statusList: { list }),
            decider: Decider(
                keys: try KeyTable(journal: MemoryJournal()),
                challenges: issuer,
                sessions: SessionTable()
            ),
            admission: EnrolmentAdmission(admission)
        )
        challenge = String(
            decoding: issuer.issue(.enrolment, now: Self.now.seconds),
            as: UTF8.self
        )
        genuine = Array(key.enrolment(challenge: challenge, at: Self.now).utf8)
    }

    /// The genuine key's document with another chain.
    func document(_ chain: [[UInt8]]) -> [UInt8] {
        let texts = chain.map { "\"\(Base64.text($0))\"" }.joined(separator: ",")
        return Array(
            (#"{"platform":"android","key_id":"\#(key.keyID.base64)","chain":["# + texts
                + #"],"challenge":"\#(challenge)"}"#).utf8
        )
    }

    /// Whether the document would enrol the key. Nothing is stored, and the challenge stays good.
    @discardableResult
    func feed(_ document: [UInt8]) -> Bool {
        let now = tick.add(1_000_000_000, ordering: .relaxed).newValue
        switch enrolment.examine(EnrolmentCall(document, now: Self.now, tick: now)) {
        case .store(let record, let serial):
            FuzzTarget.demand(record.keyID == key.keyID, "no other key enrols")
            _ = enrolment.stored(.failed, spending: serial)
            return true
        case .ended(.refuse): return false
        case .ended, .check: preconditionFailure("EnrolmentStand: nothing of it")
        }
    }
}
