import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// curl in front, Python behind: neither is ours.
    @Suite struct Curl {
        struct Transfer: Sendable, CustomTestStringConvertible {
            let version: String
            let count: Int
            let sendsChunks: Bool
            let path: String

            var testDescription: String {
                "HTTP/\(version) \(count) bytes \(sendsChunks ? "chunked" : "plain") \(path)"
            }

            static let all: [Transfer] = ["1.0", "1.1"].flatMap { version in
                [0, 1, 4 << 20].flatMap { count in
                    // HTTP/1.0 has no chunks to send.
                    (version == "1.0" ? [false] : [false, true]).flatMap { sendsChunks in
                        ["/plain", "/chunked", "/v1/plain", "/v1/chunked"].map { path in
                            Transfer(
                                version: version,
                                count: count,
                                sendsChunks: sendsChunks,
                                path: path
                            )
                        }
                    }
                }
            }
        }

        private static let rules = """
            - id: watched
              match: { path: /v1/** }
              mode: observe
              sign: content
            """

        private static func content(_ count: Int) -> Data {
            // Words, since ten million closures take seconds in a debug build.
            var state: UInt64 = 0x9E37_79B9_7F4A_7C15
            let words = (0..<(count + 7) / 8).map { _ -> UInt64 in
                state ^= state << 13
                state ^= state >> 7
                state ^= state << 17
                return state
            }
            return words.withUnsafeBytes { Data($0.prefix(count)) }
        }

        @Test func `curl gets back what it sent, byte for byte`() throws {
            guard let curl = Scenario.tool("curl") else { return }
            let scenario = try Scenario()
            defer { scenario.end() }
            guard let origin = try EchoOrigin(scenario) else { return }
            try scenario.configure(origin: origin.address, rules: Self.rules)
            let gateway = try scenario.serve()
            var contents: [Int: Data] = [:]
            for transfer in Transfer.all {
                let content = contents[transfer.count] ?? Self.content(transfer.count)
                contents[transfer.count] = content
                let sent = scenario.folder.appending(path: "sent")
                let received = scenario.folder.appending(path: "received")
                try content.write(to: sent)
                try? FileManager.default.removeItem(at: received)
                var arguments = [
                    "--silent", "--show-error", "--max-time", "60", "--http\(transfer.version)",
                    "--request", "POST", "--data-binary", "@\(sent.path)", "--output",
                    received.path, "--write-out", "%{http_code} %{size_upload}",
                ]
                if transfer.sendsChunks { arguments += ["-H", "Transfer-Encoding: chunked"] }
                arguments.append("http://127.0.0.1:\(gateway.port)\(transfer.path)")
                let result = try scenario.run(curl, arguments)
                expectEqual(result.status, 0, "\(transfer.testDescription): \(result.complained)")
                #expect(
                    result.printed.hasPrefix("200 "),
                    "\(transfer.testDescription): \(result.printed)"
                )
                let back = (try? Data(contentsOf: received)) ?? Data()
                expectEqual(back, content, "\(transfer.testDescription): \(back.count) came back")
            }
            try expectEqual(origin.seen().count, Transfer.all.count)
        }

        @Test func `curl is refused with a problem document in both versions`() throws {
            guard let curl = Scenario.tool("curl") else { return }
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(
                origin,
                rules: Self.rules.replacing("observe", with: "enforce")
            )
            let gateway = try scenario.serve()
            let file = scenario.folder.appending(path: "sent")
            try Data(count: 10 << 20).write(to: file)
            for version in ["1.0", "1.1"] {
                let result = try scenario.run(
                    curl,
                    [
                        "--silent", "--show-error", "--max-time", "60", "--http\(version)",
                        "--include", "--data-binary", "@\(file.path)",
                        "http://127.0.0.1:\(gateway.port)/v1/plain",
                    ]
                )
                expectEqual(result.status, 0, "\(result.complained)")
                #expect(result.printed.contains(" 401 "))
                #expect(result.printed.contains(#""reason":"assertion-missing""#))
            }
            #expect(origin.seen.isEmpty)
        }
    }
}
