import ByteCoding
import GoogleServices
import Inspection
import KeyAttestation
import OutboundCalls
import StrictDER

extension FuzzTarget {
    /// Certificates in DER, one after the other. Only Google's own sample of a phone verifies
    /// (android/keyattestation, testdata/caiman/sdk36/TEE_EC_RKP.pem, Apache-2.0; the other chains
    /// and descriptions of the corpora are from there, too).
    static func keyChain(_ bytes: [UInt8]) {
        var chain: [[UInt8]] = []
        var cursor = DERCursor(0..<bytes.count)
        while !cursor.isAtEnd {
            let start = cursor.offset
            guard (try? cursor.next(in: bytes.span)) != nil else { break }
            chain.append(Array(bytes[start..<cursor.offset]))
        }
        if cursor.offset < bytes.count { chain.append(Array(bytes[cursor.offset...])) }
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
