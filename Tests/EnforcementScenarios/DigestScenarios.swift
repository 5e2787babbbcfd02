import AppAttest
import Cryptography
import Encodings
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Content that streams past the digest that was signed.
    @Suite struct Digests {
        enum Framing: String, CaseIterable, Sendable { case length, chunked }

        /// Bytes of content, and how many of them the client sends at once.
        struct Size: Sendable, CustomTestStringConvertible {
            let count: Int
            let piece: Int

            var testDescription: String { "\(count) bytes" }

            static let all = [
                Size(count: 1, piece: 1), Size(count: 70_000, piece: 1_000),
                Size(count: 32 << 20, piece: 1 << 18),
            ]
        }

        /// Content that differs from place to place, a piece at a time, the last byte as wanted.
        private static func content(_ size: Size, lastFlipped: Bool) -> some Sequence<[UInt8]> {
            let count = (size.count + size.piece - 1) / size.piece
            let plain = (0..<size.piece).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
            return (0..<count).lazy.map { number in
                var piece = plain
                piece[0] = UInt8(truncatingIfNeeded: number)
                if number == count - 1 {
                    piece.removeLast(count * size.piece - size.count)
                    if lastFlipped { piece[piece.count - 1] ^= 1 }
                }
                return piece
            }
        }

        private static func digest(_ pieces: some Sequence<[UInt8]>) -> SHA256Digest {
            var stream = SHA256.Stream()
            for piece in pieces { stream.update(piece.span) }
            return stream.digest()
        }

        private static let rules = """
            - id: uploads
              match: { path: /v1/enforced }
              mode: enforce
              sign: [method, target, body]
              body: { digest: streamed, limit: 200MiB }
            - id: watched
              match: { path: /v1/observed }
              mode: observe
              sign: [method, target, body]
              body: { digest: streamed, limit: 200MiB }
            - id: small
              match: { path: /v1/small }
              mode: enforce
              sign: [method, target, body]
              body: { digest: streamed, limit: 64KiB }
            - id: held
              match: { path: /v1/held }
              mode: enforce
              sign: [method, target, body]
              body: { digest: held, limit: 200MiB, memory: 64KiB }
            """

        /// Its largest content has more room on a disk than in memory, where files of a default
        /// folder may be.
        private static let onDisk = "spill_folder: /var/tmp"

        /// Sends content under a digest that was signed.
        private func upload(
            _ client: HTTPClient,
            _ key: inout SoftwareKey,
            _ target: String,
            _ size: Size,
            _ framing: Framing,
            digest: SHA256Digest,
            lastFlipped: Bool = false,
            declares: Bool = true
        ) throws -> Answer {
            let data = RequestLines.clientData(
                [.method, .target, .body],
                of: RequestLines.Request(
                    method: "POST",
                    target: target,
                    digest: digest.array
                ),
                challenge: nil
            )
            let assertion = key.assertionText(clientDataHash: SHA256.digest(of: data).array)
            var fields: [(name: String, value: String)] = [
                ("App-Attest-Key-Id", key.keyID.base64),
                ("App-Attest-Assertion", String(decoding: assertion, as: UTF8.self)),
            ]
            if declares {
                fields.append(("Content-Digest", "sha-256=:\(Base64.text(digest.array)):"))
            }
            let pieces = Self.content(size, lastFlipped: lastFlipped)
            switch framing {
            case .length:
                fields.append(("Content-Length", String(size.count)))
                return try client.stream(head: HTTPClient.head("POST", target, fields), pieces)
            case .chunked:
                fields.append(("Transfer-Encoding", "chunked"))
                let ends = [Array("0\r\n\r\n".utf8)]
                let chunks = pieces.map { piece in
                    Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece
                        + Array("\r\n".utf8)
                }
                let all = [AnySequence(chunks), AnySequence(ends)].lazy.joined()
                return try client.stream(head: HTTPClient.head("POST", target, fields), all)
            }
        }

        @Test(arguments: Size.all, Framing.allCases)
        func `of content that is not what was signed the origin never sees the end`(
            size: Size,
            framing: Framing
        ) throws {
            // Much content takes the same way as some, and costs a lot under TLS.
            let sides = size.count < 1 << 20 ? Scenario.OriginSide.allCases : [.plain]
            for side in sides { try playOtherContent(side, size, framing) }
        }

        private func playOtherContent(
            _ side: Scenario.OriginSide,
            _ size: Size,
            _ framing: Framing
        ) throws {
            let scenario = try Scenario(side)
            defer { scenario.end() }
            var (gateway, origin, key) = try scenario.start(rules: Self.rules, more: Self.onDisk)
            let client = gateway.client()
            let digest = Self.digest(Self.content(size, lastFlipped: false))
            let answer = try upload(
                client,
                &key,
                "/v1/enforced",
                size,
                framing,
                digest: digest,
                lastFlipped: true
            )
            expectEqual(answer.status, 400)
            expectEqual(answer.reason, "digest-mismatch")
            // What comes with the head is compared before anything goes out.
            let before = size.count == 1 && framing == .length ? 0 : 1
            for seen in before > 0 ? try origin.seen(1) : origin.seen {
                #expect(!seen.isComplete && seen.wasReset)
                // In chunks all bytes may have gone out before the end that is withheld.
                if framing == .length { #expect(seen.count < size.count) }
            }
            // The gateway is as good as before, on a fresh connection to the origin.
            let right = try upload(client, &key, "/v1/enforced", size, framing, digest: digest)
            expectEqual(right.status, 200)
            let next = try #require(try origin.seen(before + 1).last)
            #expect(next.isComplete)
            expectEqual(next.count, size.count)
            expectEqual(next.digest, digest)
        }

        @Test(arguments: Size.all, Framing.allCases)
        func `whoever is observed is forwarded whatever the content is`(
            size: Size,
            framing: Framing
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, origin, key) = try scenario.start(rules: Self.rules, more: Self.onDisk)
            let digest = Self.digest(Self.content(size, lastFlipped: false))
            let answer = try upload(
                gateway.client(),
                &key,
                "/v1/observed",
                size,
                framing,
                digest: digest,
                lastFlipped: true
            )
            expectEqual(answer.status, 200)
            let seen = try origin.seen(1)[0]
            #expect(seen.isComplete)
            expectEqual(seen.count, size.count)
            expectEqual(seen.digest, Self.digest(Self.content(size, lastFlipped: true)))
        }

        @Test(arguments: Framing.allCases)
        func `a verdict that content changes is counted once, as it is at the end`(
            framing: Framing
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, _, key) = try scenario.start(rules: Self.rules, more: Self.onDisk)
            let size = Size.all[1]
            let digest = Self.digest(Self.content(size, lastFlipped: false))
            func counted() throws -> [Substring] {
                try gateway.adminClient().send("GET", "/metrics").text.split(separator: "\n")
                    .filter { $0.hasPrefix("portcullis_verdicts_total{") && !$0.hasSuffix(" 0") }
            }
            for (path, enforced) in [("/v1/observed", false), ("/v1/enforced", true)] {
                let before = try counted()
                _ = try upload(
                    gateway.client(),
                    &key,
                    path,
                    size,
                    framing,
                    digest: digest,
                    lastFlipped: true
                )
                let new = try counted().filter { !before.contains($0) }
                try #require(new.count == 1, "\(new)")
                #expect(new[0].contains(#"reason="digest-mismatch",enforced="\#(enforced)""#))
                #expect(new[0].hasSuffix(" 1"))
            }
        }

        @Test(arguments: Size.all, Framing.allCases)
        func `held content reaches the origin whole or not at all`(
            size: Size,
            framing: Framing
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, origin, key) = try scenario.start(rules: Self.rules, more: Self.onDisk)
            let client = gateway.client()
            let digest = Self.digest(Self.content(size, lastFlipped: false))
            for (declares, reason) in [(true, "digest-mismatch"), (false, "signature-mismatch")] {
                let answer = try upload(
                    client,
                    &key,
                    "/v1/held",
                    size,
                    framing,
                    digest: digest,
                    lastFlipped: true,
                    declares: declares
                )
                expectEqual(answer.reason, reason)
            }
            let right = try upload(
                client,
                &key,
                "/v1/held",
                size,
                framing,
                digest: digest,
                declares: false
            )
            expectEqual(right.status, 200)
            let seen = try origin.seen(1)
            expectEqual(seen.count, 1)
            #expect(seen[0].isComplete)
            expectEqual(seen[0].digest, digest)
        }

        @Test(arguments: Framing.allCases)
        func `content beyond the limit is cut off, announced or not`(framing: Framing) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, origin, key) = try scenario.start(rules: Self.rules, more: Self.onDisk)
            let size = Size(count: (64 << 10) + 1, piece: 1_000)
            let digest = Self.digest(Self.content(size, lastFlipped: false))
            let client = gateway.client()
            let answer = try upload(client, &key, "/v1/small", size, framing, digest: digest)
            expectEqual(answer.status, 413)
            expectEqual(answer.reason, "content-too-large")
            if framing == .chunked { _ = try origin.seen(1) }
            #expect(origin.seen.filter(\.isComplete).isEmpty)
            let fits = Size(count: 64 << 10, piece: 1_000)
            let right = Self.digest(Self.content(fits, lastFlipped: false))
            let good = try upload(client, &key, "/v1/small", fits, framing, digest: right)
            expectEqual(good.status, 200)
        }

        @Test func `a client that waits for it is told to go on only when its head is good`() throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, origin, key) = try scenario.start(rules: Self.rules, more: Self.onDisk)
            for (target, damage) in [
                ("/v1/enforced", AssertionDamage?.none), ("/v1/enforced", .counterRepeated),
                ("/v1/held", .counterRepeated), ("/v1/enforced", .signature),
            ] {
                let request = SoftwareKey.Request(method: "POST", target: target, content: [1, 2])
                let proof = key.proof(
                    of: request,
                    signing: .lines([.method, .target, .body], headers: []),
                    damage: damage
                )
                let socket = try Wire(port: gateway.port)
                let fields = proof.fields + [("Content-Length", "2"), ("Expect", "100-continue")]
                try socket.send(HTTPClient.head("POST", target, fields) + "\r\n")
                let first = try socket.readHead()
                if damage == nil {
                    expectEqual(first.startLine, "HTTP/1.1 100 Continue")
                    try socket.send([1, 2])
                    let last = try socket.readHead()
                    expectEqual(last.startLine, "HTTP/1.1 200 OK")
                } else {
                    let status = damage == .signature ? "403" : "401"
                    #expect(first.startLine.hasPrefix("HTTP/1.1 \(status)"))
                }
            }
            expectEqual(origin.seen.count, 1)
        }
    }
}
