import AppAttest
import Cryptography
import HTTPWire
import KeyStore
import RequestBinding
import Rules
import SoftwareAuthenticator
import Tokens
import Verification

/// From an assertion's bytes to a verdict.
enum ProofBenchmarks {
    static var all: [() -> [Benchmark]] { [decoding, verification, judging] }

    private static let appID = "TEAM123456.com.example.bench"
    private static let now = UnixTime(seconds: 1_790_000_000)

    static func makeKey(_ shape: DeviceShape) -> SoftwareKey {
        let seed = Array("benchmarks".utf8)
        let device = SoftwareDevice(
            authority: SoftwareAuthority(seed: seed, madeAt: now),
            appID: appID,
            environment: .production,
            shape: shape
        )
        return device.makeKey(seed: seed)
    }

    private static func decoding() -> [Benchmark] {
        let shapes: [(String, DeviceShape)] = [
            ("before iOS 27", .beforeTwentySeven),
            ("iOS 27", .iOS27(category: .appStore, bundleVersion: "417")),
        ]
        return shapes.map { name, shape in
            var key = makeKey(shape)
            let bytes = key.assertion(clientData: [1, 2, 3])
            return Benchmark(group: "assertion", name: "CBOR decoded, \(name)") { _ in
                (try? UnverifiedAssertion(bytes: bytes)) != nil
            }
        }
    }

    private static func verification() -> [Benchmark] {
        var key = makeKey(.beforeTwentySeven)
        let publicKey = key.publicKey
        let message = Array("what is signed".utf8)
        let digest = SHA256.digest(of: message)
        let signature = P256PrivateKey(seed: message.span)
        let der = signature.signature(digest: digest)
        let hash = SHA256.digest(of: message)
        let bytes = key.assertion(clientDataHash: hash.array)
        let app = AppIDHash(appID: appID)
        return [
            Benchmark(group: "assertion", name: "P-256 alone") { _ in
                signature.publicKey.isValidSignature(der.span, digest: digest)
            },
            Benchmark(group: "assertion", name: "decoded and verified") { _ in
                guard let assertion = try? UnverifiedAssertion(bytes: bytes) else { return false }
                let verified = try? assertion.verified(
                    clientDataHash: hash.bytes.span,
                    key: publicKey,
                    app: app,
                    after: .zero
                )
                return verified != nil
            },
        ]
    }

    /// A signed request with a challenge, from its bytes to the verdict, everything consumed.
    private static func judging() -> [Benchmark] {
        var demands = Rule.Demands(salt: "bench", mode: .enforce)
        demands.signing = .lines(.all, headers: [])
        demands.challenge = .required
        let rule = Rule(
            id: "bench",
            index: 0,
            match: .all,
            origin: OriginIndex(0),
            demands: demands
        )
        var key = makeKey(.beforeTwentySeven)
        let issuer = ChallengeIssuer()
        let keys = StoreBenchmarks.table(of: 1_000, with: key, appID)
        let policy = AppPolicy(id: appID, environments: [.production])
        var judge = Judge(
            apps: [policy],
            decider: Decider(
                keys: keys,
                challenges: issuer,
                sessions: SessionTable()
            )
        )
        let circumstances = RequestCircumstances(now: now, tick: 0)
        var requests: [[UInt8]] = []
        var head = RequestHead()
        return [
            Benchmark(
                group: "assertion",
                name: "request read and judged",
                countMax: 500,
                prepare: { count in
                    requests = (0..<count).map { _ in signed(&key, issuer, rule.signing) }
                },
                run: { number in
                    let bytes = requests[number]
                    guard HTTPBenchmarks.read(bytes, into: &head),
                        case .judged(let verdict) =
                            judge.open(head, bytes.span, rule: rule, in: circumstances)
                    else { return false }
                    return verdict.outcome == .pass
                }
            )
        ]
    }

    private static func signed(
        _ key: inout SoftwareKey,
        _ issuer: ChallengeIssuer,
        _ form: SigningForm
    ) -> [UInt8] {
        let challenge = issuer.issue(.assertion, now: now.seconds)
        let request = SoftwareKey.Request(
            method: "GET",
            target: "/v1/orders/17",
            challenge: String(decoding: challenge, as: UTF8.self)
        )
        let fields = key.proof(of: request, signing: form).fields
        let lines = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        return Array(HTTPBenchmarks.withFields(HTTPBenchmarks.minimal, lines).utf8)
    }
}
