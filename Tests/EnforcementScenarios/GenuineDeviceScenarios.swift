import Expectations
import Foundation
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// Assertions of real devices, over TCP, through the program, to origins that are not ours.
    @Suite(.enabled(if: !SharedVectors.assertions.isEmpty))
    struct GenuineDevices {
        private static let rules = """
            - id: legacy
              match: { path: /v1/** }
              mode: enforce
              sign: content
              challenge: none
            """

        private func gateway(_ scenario: Scenario, origin: String) throws -> GatewayProcess {
            let apps = Set(SharedVectors.assertions.map(\.appId)).sorted().map {
                "  - { id: \($0), environments: [production, development] }"
            }
            try scenario.configure(
                origin: origin,
                apps: apps.joined(separator: "\n"),
                rules: Self.rules
            )
            let lines = SharedVectors.assertions.map { $0.importLine + "\n" }.joined()
            let imported = try scenario.portcullis(
                "keys",
                "import",
                "--config",
                scenario.path("portcullis.yaml"),
                "-",
                input: lines
            )
            expectEqual(imported.status, 0, "\(imported)")
            #expect(imported.printed.hasPrefix("imported: \(SharedVectors.assertions.count),"))
            return try scenario.serve()
        }

        /// Sends each assertion with changed content, as it was made, once more, and changed again.
        private func send(_ client: HTTPClient) throws {
            for (number, vector) in SharedVectors.assertions.enumerated() {
                func post(_ content: [UInt8]) throws -> Answer {
                    try client.send("POST", "/v1/\(number)", vector.fields, content: content)
                }
                let content = try bytes(vector.clientDataB64)
                var changed = content
                changed[changed.count / 2] ^= 1
                for other in [changed, [], content + [0]] {
                    let answer = try post(other)
                    expectEqual(answer.status, 403, "\(vector.id)")
                    expectEqual(answer.reason, "signature-mismatch", "\(vector.id)")
                }
                try expectEqual(post(content).status, 200, "\(vector.id)")
                let again = try post(content)
                expectEqual(again.status, 401, "\(vector.id)")
                expectEqual(again.reason, "counter-replayed", "\(vector.id)")
                expectEqual(again.value("WWW-Authenticate")?.contains("counter-replayed"), true)
                let late = try post(changed)
                expectEqual(late.status, 403, "\(vector.id)")
                expectEqual(late.reason, "signature-mismatch", "\(vector.id)")
            }
        }

        /// One line a vector, each with its content's length.
        private func expected() throws -> [String] {
            try SharedVectors.assertions.enumerated().map { number, vector in
                "POST /v1/\(number) \(try bytes(vector.clientDataB64).count) pass"
            }
        }

        @Test func `each genuine assertion is admitted to a Python origin exactly once`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            guard let origin = try EchoOrigin(scenario) else { return }
            let gateway = try gateway(scenario, origin: origin.address)
            try send(gateway.client())
            #expect(try origin.seen() == (try expected()))
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `each genuine assertion is admitted to nginx exactly once`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            guard let origin = try NginxOrigin(scenario) else { return }
            let gateway = try gateway(scenario, origin: origin.address)
            try send(gateway.client())
            #expect(try origin.seen() == (try expected().map { $0 + "." }))
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `the content comes back from behind the gateway byte for byte`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            guard let origin = try EchoOrigin(scenario) else { return }
            let gateway = try gateway(scenario, origin: origin.address)
            let client = gateway.client()
            for vector in SharedVectors.assertions {
                let content = try bytes(vector.clientDataB64)
                let size = String(content.count, radix: 16)
                let head = HTTPClient.head(
                    "POST",
                    "/v1/chunked",
                    vector.fields + [("Transfer-Encoding", "chunked")]
                )
                let chunks = Array("\(size)\r\n".utf8) + content + Array("\r\n0\r\n\r\n".utf8)
                let answer = try client.stream(head: head, [chunks])
                expectEqual(answer.status, 200, "\(vector.id)")
                expectEqual(answer.body, content, "\(vector.id)")
            }
        }
    }
}

extension AssertionVector {
    /// The key as `keys import` takes it, before it made this assertion.
    fileprivate var importLine: String {
        #"{"key_id":"\#(keyId)","app_id":"\#(appId)","environment":"production","#
            + #""public_key":"\#(publicKeyX963B64)","counter":\#(counter - 1)}"#
    }

    fileprivate var fields: [(name: String, value: String)] {
        [("App-Attest-Key-Id", keyId), ("App-Attest-Assertion", assertionB64)]
    }
}
