import ClientKit
import Expectations
import Foundation
import LoopbackKit
import PortcullisClient
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// Requests that are signed here and sent by something else.
    @Suite struct Signings {
        private static let content = Data(
            String(repeating: #"{"item":"lamp"}"#, count: 20_000).utf8
        )

        /// Sends a signed request as it stands.
        private func send(
            _ signed: SignedRequest,
            file: URL? = nil
        ) async throws -> HTTPURLResponse {
            let plain = URLSession(configuration: .ephemeral)
            defer { plain.finishTasksAndInvalidate() }
            let response =
                if let file {
                    try await plain.upload(for: signed.request, fromFile: file).1
                } else {
                    try await plain.data(for: signed.request).1
                }
            return try #require(response as? HTTPURLResponse)
        }

        /// A gateway with one rule, and an app whose plan is from the time when that said something
        /// else.
        private func outdated(_ old: String) throws -> (ClientStand, PortcullisSession) {
            let rule = "- { id: orders, match: { path: /orders/** }, mode: enforce"
            let stand = try ClientStand(rules: "\(rule), \(old) }")
            let plan = try SigningPlan(json: stand.gateway.plan())
            try stand.gateway.edit(", \(old) }", into: " }")
            try stand.gateway.restart()
            let app = try stand.app {
                $0.defaultRequirement = nil
                $0.plan = plan
            }
            return (stand, app)
        }

        @Test func `a signed request is admitted as it stands, with content of each kind`()
            async throws
        {
            let stand = try ClientStand()
            defer { stand.end() }
            for kind in ["none", "data", "stream", "file"] {
                try stand.startOver(isFrozen: false)
                let app = try stand.app()
                var request = try stand.request(kind == "none" ? "GET" : "POST", "/orders/1")
                var file: URL?
                switch kind {
                case "data": request.httpBody = Self.content
                case "stream": request.httpBodyStream = InputStream(data: Self.content)
                case "file":
                    let path = stand.folder.appending(path: "content")
                    try Self.content.write(to: path)
                    file = path
                default: break
                }
                let signed =
                    if let file {
                        try await app.sign(request, fromFile: file)
                    } else {
                        try await app.sign(request)
                    }
                try await expectEqual(send(signed, file: file).statusCode, 200, "\(kind)")
                let seen = try #require(stand.requests.last)
                let expected = kind == "none" ? [] : Array(Self.content)
                expectEqual(seen.body, expected, "\(kind)")
                expectEqual(stand.verdicts, ["pass"], "\(kind)")
                expectEqual(stand.cost, Cost(keys: 1, attestations: 1), "\(kind)")
            }
        }

        @Test func `host and cookie are signed as they are sent`() async throws {
            let stand = try ClientStand(
                rules: """
                    - { id: orders, match: { path: /orders/** }, mode: enforce,
                        headers: [host, cookie] }
                    """
            )
            defer { stand.end() }
            let app = try stand.app { $0.defaultRequirement = nil }
            for cookie in [nil, "own=1"] {
                var request = try stand.request("POST", "/orders/1", "lamp")
                request.setValue(cookie, forHTTPHeaderField: "Cookie")
                try await expectEqual(app.data(for: request).1.statusCode, 200)
            }
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        @Test func `a request that was signed by an outdated plan learns from the 401`()
            async throws
        {
            let (stand, app) = try outdated("challenge: none, sign: [method, target]")
            defer { stand.end() }
            let signed = try await app.sign(stand.request("POST", "/orders/1", "lamp"))
            let refused = try await send(signed)
            expectEqual(refused.statusCode, 401)
            let again = try #require(try await app.signAgain(signed, after: refused))
            try await expectEqual(send(again).statusCode, 200)
            // What was learned is used for the next one.
            let next = try await app.sign(stand.request("POST", "/orders/2", "lamp"))
            try await expectEqual(send(next).statusCode, 200)
            expectEqual(stand.verdicts, ["pass", "pass"])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        @Test
        func `a request that was signed in a session which the rule refuses gets an assertion`()
            async throws
        {
            let stand = try ClientStand(
                rules: """
                    - { id: orders, match: { path: /orders/** }, mode: enforce }
                    - { id: chat, match: { path: /chat/** }, mode: enforce,
                        accept: [assertion, session] }
                    """
            )
            defer { stand.end() }
            let app = try stand.app {
                $0.defaultRequirement = SigningRequirement(accepts: [.assertion, .session])
            }
            let signed = try await app.sign(stand.request("POST", "/orders/1", "lamp"))
            guard case .session(let keyID) = signed.proof else {
                Issue.record("\(signed.proof)")
                return
            }
            let refused = try await send(signed)
            expectEqual(refused.statusCode, 401)
            let again = try #require(try await app.signAgain(signed, after: refused))
            expectEqual(again.proof, .assertion(keyID: keyID))
            try await expectEqual(send(again).statusCode, 200)
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        /// The rule signs more than the plan says: 403 `signature-mismatch`, which has no lesson.
        @Test func `a request that was signed by an outdated plan learns from the 403`()
            async throws
        {
            let (stand, app) = try outdated("sign: [method, challenge]")
            defer { stand.end() }
            let signed = try await app.sign(stand.request("POST", "/orders/1", "lamp"))
            var answer = try await send(signed)
            expectEqual(answer.statusCode, 403)
            var last = signed
            while let again = try await app.signAgain(last, after: answer) {
                answer = try await send(again)
                last = again
            }
            expectEqual(answer.statusCode, 200)
            expectEqual(stand.verdicts, ["pass"])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }
    }
}
