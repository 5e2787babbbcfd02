import ClientKit
import Expectations
import Foundation
import LoopbackKit
import PortcullisClient
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// What is sent, and what the origin gets of it.
    @Suite struct Requests {
        private static let content = String(repeating: #"{"item":"lamp"}"#, count: 20_000)

        /// The last request that reached the origin.
        private func last(_ stand: ClientStand) throws -> WireRequest {
            try #require(stand.requests.last)
        }

        /// Sends a request with its content as `data`, as a `stream`, or from a file.
        private static func send(
            _ bytes: Data,
            as kind: String,
            _ request: URLRequest,
            _ app: PortcullisSession,
            _ stand: ClientStand
        ) async throws -> ProvenResponse {
            var request = request
            switch kind {
            case "data": request.httpBody = bytes
            case "stream": request.httpBodyStream = InputStream(data: bytes)
            default:
                let file = stand.folder.appending(path: "content")
                try bytes.write(to: file)
                return try await app.upload(for: request, fromFile: file).1
            }
            return try await app.send(request)
        }

        @Test func `the progress of an upload begins again where its proof was refused, and ends`()
            async throws
        {
            let stand = try ClientStand()
            defer { stand.end() }
            let app = try stand.app()
            _ = try await app.send(stand.request("GET", "/orders/1"))
            // The challenges at hand are those of another start.
            try stand.gateway.restart()
            let amounts = Mutex<[TransferProgress.Amount]>([])
            let progress = TransferProgress { amount in amounts.withLock { $0.append(amount) } }
            let content = Data(Self.content.utf8)
            let answer = try await app.upload(
                for: stand.request("POST", "/orders/1"),
                from: content,
                delegate: progress
            ).1
            #expect((answer.statusCode, answer.attempts) == (200, 2))
            let sent = amounts.withLock { $0.map(\.sent) }
            expectEqual(sent.last, Int64(content.count))
            // Of the first try nothing may have been reported: the gateway refuses it at its head.
            #expect(zip(sent, sent.dropFirst()).count { $0 > $1 } <= 1)
            try expectEqual(last(stand).body.count, content.count)
        }

        /// The sample dropped the caller's content, sent an empty one, and got verdict pass for it.
        @Test func `content of each kind reaches the origin as it was given`() async throws {
            let stand = try ClientStand()
            defer { stand.end() }
            let bytes = Data(Self.content.utf8)
            for kind in ["data", "stream", "file", "empty", "none", "pieces"] {
                try stand.startOver(isFrozen: false)
                let app = try stand.app()
                var request = try stand.request("POST", "/orders/1")
                let answer: ProvenResponse
                switch kind {
                case "data", "stream", "file":
                    answer = try await Self.send(bytes, as: kind, request, app, stand)
                case "empty":
                    request.httpBody = Data()
                    answer = try await app.send(request)
                case "pieces":
                    request.httpBody = bytes
                    let (pieces, response) = try await app.bytes(for: request)
                    var text = Data()
                    for try await piece in pieces { text.append(piece) }
                    expectEqual(String(decoding: text, as: UTF8.self), "ok")
                    answer = response
                default:
                    answer = try await app.send(request)
                }
                expectEqual(answer.statusCode, 200, "\(kind)")
                let seen = try last(stand)
                let expected = ["empty", "none"].contains(kind) ? [] : Array(bytes)
                expectEqual(seen.body, expected, "\(kind)")
                expectEqual(seen.head.value("App-Attest-Verdict"), "pass", "\(kind)")
                expectEqual(stand.cost, Cost(keys: 1, attestations: 1), "\(kind)")
            }
        }

        /// Content is sent again after a refusal, whatever it comes from.
        @Test func `content is sent again with a new proof when its challenge has died`()
            async throws
        {
            let stand = try ClientStand()
            defer { stand.end() }
            let bytes = Data(Self.content.utf8)
            for kind in ["data", "stream", "file"] {
                try stand.startOver(isFrozen: false)
                let app = try stand.app()
                try await expectEqual(app.send(stand.request("GET", "/orders/1")).statusCode, 200)
                // Challenges of the process before are unknown to the next one.
                try stand.gateway.restart()
                let request = try stand.request("POST", "/orders/2")
                let answer = try await Self.send(bytes, as: kind, request, app, stand)
                expectEqual(answer.statusCode, 200, "\(kind)")
                expectEqual(answer.attempts, 2, "\(kind)")
                try expectEqual(last(stand).body, Array(bytes), "\(kind)")
                expectEqual(stand.cost, Cost(keys: 1, attestations: 1), "\(kind)")
            }
        }

        @Test func `a large file is signed and sent without being read into memory whole`()
            async throws
        {
            let stand = try ClientStand(
                rules: """
                    - { id: photo, match: { path: /photos/** }, mode: enforce,
                        body: { digest: streamed, limit: 64MiB } }
                    """
            )
            defer { stand.end() }
            var requirement = SigningRequirement()
            requirement.needsContentDigest = true
            let app = try stand.app { [requirement] in $0.defaultRequirement = requirement }
            let file = stand.folder.appending(path: "photo")
            let size = 48 << 20
            try Data((0..<size).lazy.map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7) })
                .write(to: file)
            let request = try stand.request("PUT", "/photos/1")
            let answer = try await app.upload(for: request, fromFile: file).1
            expectEqual(answer.statusCode, 200)
            let seen = try last(stand)
            expectEqual(seen.body.count, size)
            expectEqual(seen.head.value("App-Attest-Verdict"), "pass")
        }

        @Test func `an unsupported device goes on where a rule observes, and says so`() async throws
        {
            let stand = try ClientStand(
                rules: "- { id: all, match: { path: /** }, mode: observe }"
            )
            defer { stand.end() }
            stand.service.isSupported = false
            let app = try stand.app()
            let answer = try await app.send(stand.request("GET", "/orders/1"))
            expectEqual(answer.statusCode, 200)
            expectEqual(answer.proof, .none(.unsupported))
            let seen = try last(stand)
            expectEqual(seen.head.value("App-Attest-Verdict"), "refuse")
            expectEqual(seen.head.value("App-Attest-Reason"), "unsupported")
            expectEqual(stand.cost, Cost(keys: 0, attestations: 0))
        }

        /// The default was `strict`: eight requests that take two seconds each took sixteen.
        @Test func `requests of a rule that says no counter are under way together`() async throws {
            let arrived = Mutex(0)
            let gate = Gate()
            let stand = try ClientStand(
                rules: "- { id: orders, match: { path: /orders/** }, mode: enforce }"
            ) { connection in
                while let request = try connection.nextRequest() {
                    // None is answered before all have come.
                    let isLast = arrived.withLock { count in
                        count += 1
                        return count == 4
                    }
                    if isLast { for _ in 0..<4 { gate.open() } }
                    try gate.pass()
                    try connection.answer(200, body: "ok", to: request)
                }
            }
            defer { stand.end() }
            let plan = try SigningPlan(json: stand.gateway.plan())
            let app = try stand.app {
                $0.plan = plan
                // The turn of a strict rule would never end by itself.
                $0.limits.strictTurn = .seconds(3_600)
                $0.limits.strictWait = .seconds(3_600)
            }
            let answers = try await app.sendAtOnce(4, stand.request("POST", "/orders/1", "5"))
            expectEqual(answers.map(\.statusCode), Array(repeating: 200, count: 4))
            expectEqual(stand.verdicts, Array(repeating: "pass", count: 4))
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        @Test func `requests of a strict rule are sent one at a time, and all are admitted`()
            async throws
        {
            let stand = try ClientStand(
                rules: """
                    - { id: money, match: { path: /money/** }, mode: enforce, counter: strict }
                    - { id: other, match: { path: /other/** }, mode: enforce,
                        counter: { window: 64 } }
                    """
            )
            defer { stand.end() }
            var requirement = SigningRequirement()
            requirement.counter = .strict
            let app = try stand.app { [requirement] in $0.defaultRequirement = requirement }
            let answers = try await app.sendAtOnce(40, stand.request("POST", "/money/1", "5"))
            #expect(answers.allSatisfy { $0.statusCode == 200 })
            expectEqual(answers.map(\.attempts), Array(repeating: 1, count: 40))
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        /// The sample sent the proof of one target to another.
        @Test func `a redirect is signed anew at the gateway, and carries no proof elsewhere`()
            async throws
        {
            let elsewhere = try TestOrigin()
            defer { elsewhere.stop() }
            let foreign = "http://localhost:\(elsewhere.port)/orders/3"
            let stand = try ClientStand { connection in
                while let request = try connection.nextRequest() {
                    switch request.target {
                    case "/orders/1":
                        try connection.answer(307, fields: "Location: /orders/2\r\n", to: request)
                    case "/orders/9":
                        try connection.answer(307, fields: "Location: \(foreign)\r\n", to: request)
                    default: try connection.answer(200, body: "ok", to: request)
                    }
                }
            }
            defer { stand.end() }
            let app = try stand.app()
            let answer = try await app.send(stand.request("POST", "/orders/1", "lamp"))
            expectEqual(answer.statusCode, 200)
            let seen = try last(stand)
            expectEqual(seen.target, "/orders/2")
            expectEqual(seen.body, Array("lamp".utf8))
            expectEqual(seen.head.value("App-Attest-Verdict"), "pass")

            let away = try await app.send(stand.request("POST", "/orders/9", "lamp"))
            expectEqual(away.statusCode, 200)
            expectEqual(away.proof, .none(.otherOrigin))
            let strange = try #require(elsewhere.requests.last)
            #expect(!strange.head.fields.contains { $0.name.lowercased().hasPrefix("app-attest") })
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        /// The sample obeyed every 401 with such a document.
        @Test(arguments: ["enrol", "sign-again"])
        func `a 401 of the origin's own is an answer, and no key is forgotten for it`(
            next: String
        ) async throws {
            let document = #"{"status":401,"reason":"key-unknown","next":"\#(next)"}"#
            let stand = try ClientStand { connection in
                while let request = try connection.nextRequest() {
                    try connection.answer(
                        401,
                        body: document,
                        fields: "Content-Type: application/problem+json\r\n"
                            + "WWW-Authenticate: Bearer realm=\"shop\"\r\n",
                        to: request
                    )
                }
            }
            defer { stand.end() }
            let app = try stand.app()
            for _ in 0..<3 {
                let (data, answer) = try await app.data(for: stand.request("GET", "/orders/1"))
                expectEqual(answer.statusCode, 401)
                expectEqual(answer.attempts, 1)
                expectEqual(String(decoding: data, as: UTF8.self), document)
            }
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        /// A proof is good once: what URLSession repeats by itself in the background is refused.
        @Test func `a signed request that was spent is signed again for the background`()
            async throws
        {
            let stand = try ClientStand()
            defer { stand.end() }
            let app = try stand.app()
            let file = stand.folder.appending(path: "content")
            try Data(Self.content.utf8).write(to: file)
            let plain = URLSession(configuration: .ephemeral)
            var request = try stand.request("POST", "/orders/1")
            // By which the origin tells the second run from the first.
            request.setValue("8e03978e", forHTTPHeaderField: "Idempotency-Key")
            let signed = try await app.sign(request, fromFile: file)
            let first = try await plain.upload(for: signed.request, fromFile: file).1
            expectEqual((first as? HTTPURLResponse)?.statusCode, 200)
            let second = try await plain.upload(for: signed.request, fromFile: file).1
            let refused = try #require(second as? HTTPURLResponse)
            expectEqual(refused.statusCode, 401)
            let again = try #require(try await app.signAgain(signed, after: refused))
            let third = try await plain.upload(for: again.request, fromFile: file).1
            expectEqual((third as? HTTPURLResponse)?.statusCode, 200)
            expectEqual(stand.verdicts, ["pass", "pass"])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }
    }
}
