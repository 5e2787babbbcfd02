import Cryptography
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import Rules
import SoftwareAuthenticator
import Synchronization
import TestSupport
import Testing

extension Scenarios {
    /// A rule that observes, or leaves a client out, changes nothing for the client and the origin.
    @Suite(.ofApple) struct ObservedTraffic {
        private typealias Side = ComparedGateway.Side

        private static let ids = [
            "place-order", "uploads", "held", "chat", "places", "page", "purge", "pay", "default",
        ]
        /// Rules that ask different things, one of them with an origin of its own.
        private static let rules = """
            - { id: place-order, match: { method: [POST], path: /v1/orders }, MODE, apps: [APP],
                sign: [method, target, body, challenge], headers: [idempotency-key],
                body: { limit: 64B } }
            - { id: uploads, match: { path: "/v1/uploads/*" }, MODE, apps: [APP],
                sign: [method, target, body], body: { digest: streamed, limit: 64B } }
            - { id: held, match: { path: "/v1/held/**" }, MODE, apps: [APP],
                sign: [method, target, body], body: { limit: 64B } }
            - { id: chat, match: { path: "/v1/chat/**" }, MODE, apps: [APP],
                accept: [assertion, session], sign: [method, target, body] }
            - { id: places, match: { path: /v1/place_order }, MODE, apps: [APP],
                sign: [method, target], origin: twin }
            - { id: page, match: { path: /page }, MODE, accept: [page] }
            - { id: purge, match: { method: [PURGE], path: "/v1/cache/**" }, MODE, apps: [APP],
                sign: [method, target] }
            - { id: pay, match: { path: /pay.php }, MODE, apps: [APP], sign: [method, target],
                also: [page] }
            """.replacing("APP", with: Scenario.appID)
        private static let more = """
            proofs:
              page: { kind: jwt, field: X-Page, issuer: "\(TokenIssuer.name)", audience: shop, \
            algorithms: [ES256], keys: { file: keys.json } }
            """

        /// What a default asks that judges all other paths.
        private static let fallbacks = [
            "body: { limit: 16B }", "body: { digest: streamed, limit: 16B }",
        ]

        // MARK: The requests

        /// The cases of the HTTP scenarios. Those that a timing decides are left out: whether a
        /// slow request is answered depends on when its bytes come, whatever the rules.
        private static let cases = HTTPCase.all
            .filter { $0.direction == "request" && $0.category != "slow" }
            .map { one in
                PlayedRequest(
                    name: one.id,
                    bytes: one.bytes,
                    endsSending: one.expect.action != "reject",
                    methods: (one.expect.messages ?? []).map(\.method)
                )
            }

        private static let targets = [
            ("POST", "/v1/orders"), ("PUT", "/v1/uploads/7"), ("POST", "/v1/held/a/b"),
            ("GET", "/v1/chat/x"), ("POST", "/v1/place_order"), ("GET", "/page"),
            ("PURGE", "/v1/cache/a"), ("GET", "/pay.php"),
        ]
        /// Methods in another case than rules and registries name them, and those of other rules.
        private static let methods = ["purge", "Purge", "PURGE", "post", "PATCH"]
        /// Ends of paths that have no single meaning, whatever the rules.
        private static let odd = ["/..", "/../a", "%2Fx", "%00", "/%2e%2e/v1/orders", "%zz", "\\x"]
        private static let fields = [
            "", "", "", "Connection: idempotency-key\r\nIdempotency-Key: 1\r\n",
            "Idempotency-Key: 1\r\n", "Connection: x-page\r\nX-Page: a\r\n", "X-Page: a.b.c\r\n",
            "App-Attest-Key-Id: \(String(repeating: "A", count: 43))=\r\n"
                + "App-Attest-Assertion: aaaa\r\n",
            "App-Attest-Session: x\r\n", "Expect: 100-continue\r\n",
            "Content-Digest: sha-256=:\(String(repeating: "A", count: 43))=:\r\n",
        ]

        /// Requests for the rules' paths in other spellings, with and without content, each once.
        private static let spellings: [PlayedRequest] = {
            var random = SeededGenerator(seed: 48)
            var requests: [String: PlayedRequest] = [:]
            while requests.count < 700 {
                var (method, path) = targets.randomElement(using: &random) ?? ("GET", "/")
                let times = Int.random(in: 0...3, using: &random)
                path = PathSpelling.changed(path, times: times, &random)
                if Int.random(in: 0..<10, using: &random) == 0 {
                    path += odd.randomElement(using: &random) ?? ""
                }
                if Int.random(in: 0..<6, using: &random) == 0 {
                    method = methods.randomElement(using: &random) ?? method
                }
                let fields = fields.randomElement(using: &random) ?? ""
                let size = method == "GET" ? 0 : [0, 5, 40, 200].randomElement(using: &random) ?? 0
                let isChunked = Bool.random(using: &random)
                let head = "\(method) \(path) HTTP/1.1\r\nHost: api.example.com\r\n\(fields)"
                let content = [UInt8](repeating: UInt8(ascii: "x"), count: size)
                let request = PlayedRequest(
                    name: "\(method) \(path) \(fields.debugDescription) \(size)",
                    bytes: framed(head, content, isChunked: isChunked),
                    methods: [method]
                )
                requests[request.name] = request
            }
            return requests.sorted { $0.key < $1.key }.map(\.value)
        }()

        private static func framed(_ head: String, _ content: [UInt8], isChunked: Bool) -> [UInt8] {
            guard !content.isEmpty else { return Array((head + "\r\n").utf8) }
            guard isChunked else {
                return Array((head + "Content-Length: \(content.count)\r\n\r\n").utf8) + content
            }
            let size = String(content.count, radix: 16)
            return Array((head + "Transfer-Encoding: chunked\r\n\r\n\(size)\r\n").utf8) + content
                + Array("\r\n0\r\n\r\n".utf8)
        }

        /// Signed requests whose content is held or hashed: good ones, replays and forgeries,
        /// within the rule's limit and beyond it.
        private static func signed(by keys: [SoftwareKey]) -> [PlayedRequest] {
            let damages: [AssertionDamage?] = [nil, .signature, .counterRepeated, .truncated]
            return keys.enumerated().map { number, key in
                var key = key
                let path = number % 2 == 0 ? "/v1/held/\(number)" : "/v1/uploads/\(number)"
                let size = [5, 40, 200, 3000][number / 2 % 4]
                let damage = damages[number / 8 % damages.count]
                let content = [UInt8](repeating: UInt8(ascii: "y"), count: size)
                let request = SoftwareKey.Request(method: "POST", target: path, content: content)
                let form = SigningForm.lines([.method, .target, .body], headers: [])
                let proof = key.proof(of: request, signing: form, damage: damage)
                return PlayedRequest(
                    name: "\(path), \(size) bytes, \(damage.map(\.rawValue) ?? "good")",
                    bytes: framed(
                        HTTPClient.head("POST", path, proof.fields),
                        content,
                        isChunked: number / 32 % 2 == 1
                    ),
                    methods: ["POST"],
                    isHeld: true
                )
            }
        }

        // MARK: The comparison

        private typealias Played = [(fate: RequestFate, reasons: [String])]

        private static func play(
            _ requests: [PlayedRequest],
            _ fallback: String,
            _ keys: [SoftwareKey]
        ) throws -> [Side: Played] {
            let lines = keys.map { $0.importLine(as: .test) + "\n" }.joined()
            let found = Mutex<[Side: Result<Played, any Error>]>([:])
            DispatchQueue.concurrentPerform(iterations: Side.allCases.count) { place in
                let side = Side.allCases[place]
                let result = Result<Played, any Error> {
                    let gateway = try ComparedGateway(
                        side,
                        rules: rules,
                        fallback: "apps: [\(Scenario.appID)], sign: [method, target, body], "
                            + fallback,
                        more: more,
                        keys: lines
                    )
                    defer { gateway.end() }
                    return try requests.map { try gateway.play($0) }
                }
                found.withLock { $0[side] = result }
            }
            return try found.withLock { $0 }.mapValues { try $0.get() }
        }

        @Test func `the share of one client in a million leaves out the one that is tried`() throws
        {
            let share = try #require(Share(millionths: 1))
            let address: [UInt8] = [127, 0, 0, 1]
            for id in Self.ids {
                let rollout = Rollout(.fixed(share), salt: id)
                let isIncluded = rollout.enforces(address.span, at: Scenario.now)
                #expect(!isIncluded, "\(id)")
            }
        }

        @Test(arguments: fallbacks)
        func `rules that observe or leave the client out change nothing but the verdict`(
            fallback: String
        ) throws {
            let keys = (0..<64).map { _ in Scenario.device.makeKey() }
            let signed = Self.signed(by: keys)
            let requests = Self.cases + Self.spellings + signed
            let played = try Self.play(requests, fallback, keys)
            let off = try #require(played[.off])
            var reasons: [String: Int] = [:]
            for side in [Side.observing, .outside] {
                let other = try #require(played[side])
                expectEqual(other.count, off.count)
                for (request, (mine, theirs)) in zip(requests, zip(off, other)) {
                    let what = Comment(rawValue: "\(request.name), \(side)")
                    expectEqual(theirs.fate, mine.fate, what)
                    for reason in theirs.reasons { reasons[reason, default: 0] += 1 }
                }
            }
            let forwarded = off.count { !$0.fate.seen.isEmpty }
            print(
                """
                \(Self.cases.count) cases, \(Self.spellings.count) spellings, \(signed.count) \
                signed: \(forwarded) forwarded, \(off.count - forwarded) answered by the \
                gateway; would be refused by rules that judge, twice: \
                \(reasons.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" })
                """
            )
            expectEqual(Self.cases.count, 532 + 1291)
            #expect(forwarded > 900)
            // The rules did judge: each of these reasons would refuse a client that is enforced.
            for (reason, count) in [
                ("path-ambiguous", 400), ("method-case", 20), ("connection-nomination", 2),
                ("assertion-missing", 400), ("signature-mismatch", 8), ("proof-missing", 2),
            ] {
                #expect(reasons[reason, default: 0] >= count, "\(reason): \(reasons)")
            }
        }
    }
}
