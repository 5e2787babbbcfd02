import Cryptography
import Encodings
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Content that breaks off, or is not what was signed: what the origin sees of it.
    @Suite struct Truncation {
        /// What becomes of a connection whose content is not all sent.
        enum Ending: String, CaseIterable, Sendable {
            /// Nothing: the gateway waits until it no longer does.
            case silence
            /// The client sends its end and reads on.
            case halfClose
            case close
            case reset
        }

        enum Framing: String, CaseIterable, Sendable { case length, chunked }

        private static let signed = Array("to=alice&amount=1".utf8)
        private static let other = Array("to=mallory&amount=1000000&x=".utf8)
        private static let parts = SignedParts([.method, .target, .body])

        private static let rules = """
            - id: held
              match: { path: /held }
              mode: enforce
              sign: [method, target, body]
            - id: streamed
              match: { path: /streamed }
              mode: enforce
              sign: [method, target, body]
              body: { digest: streamed, limit: 64KiB }
            - id: unsigned
              match: { path: /unsigned }
              mode: enforce
              sign: [method, target]
            - id: watched
              match: { path: /watched }
              mode: observe
              sign: [method, target, body]
              body: { limit: 1KiB, memory: 1KiB }
            """

        private func start(
            _ scenario: Scenario,
            rules: String = Self.rules
        ) throws -> (GatewayProcess, RecordingOrigin, SoftwareKey) {
            try scenario.start(
                rules: rules,
                more: "timeouts: { body_idle: 300ms, linger: 100ms }"
            )
        }

        /// The head of a request whose signature covers one content, for another.
        private func head(
            _ key: inout SoftwareKey,
            _ target: String,
            signed: [UInt8],
            count: Int,
            _ framing: Framing,
            parts: SignedParts = Self.parts,
            declares: Bool = true
        ) -> String {
            let request = SoftwareKey.Request(method: "POST", target: target, content: signed)
            var fields = key.proof(of: request, signing: .lines(parts, headers: [])).fields
            if !declares { fields.removeAll { $0.name.lowercased() == "content-digest" } }
            switch framing {
            case .length: fields.append(("Content-Length", String(count)))
            case .chunked: fields.append(("Transfer-Encoding", "chunked"))
            }
            return HTTPClient.head("POST", target, fields) + "\r\n"
        }

        /// All of a content but its last byte, as it is sent.
        private func truncated(_ content: [UInt8], _ framing: Framing) -> [UInt8] {
            switch framing {
            case .length: content.dropLast()
            case .chunked:
                Array("\(String(content.count, radix: 16))\r\n".utf8) + content
                    + Array("\r\n0\r\n\r".utf8)
            }
        }

        /// Leaves a connection, and waits until the gateway has let go of it.
        private func leave(_ socket: Wire, _ ending: Ending) throws {
            switch ending {
            case .silence: break
            case .halfClose: socket.finishSending()
            case .close: return socket.close()
            case .reset:
                return socket.reset()
            }
            // Whatever is answered: its end.
            do { _ = try socket.readToEnd() } catch WireFault.reset {}
        }

        @Test
        func `an origin sees nothing of content that is not all there, whatever the client does`()
            throws
        {
            try Scenario.onBothSides { scenario in
                var (gateway, origin, key) = try start(scenario)
                let admin = try gateway.adminClient()
                let ways = Framing.allCases.flatMap { [($0, true), ($0, false)] }
                var aborted = 0.0
                for ending in Ending.allCases {
                    for (framing, declares) in ways {
                        let socket = try Wire(port: gateway.port)
                        try socket.send(
                            head(
                                &key,
                                "/held",
                                signed: Self.signed,
                                count: Self.other.count,
                                framing,
                                declares: declares
                            )
                        )
                        try socket.send(truncated(Self.other, framing))
                        aborted += 1
                        let what = "\(ending), \(framing), \(declares)"
                        // A reset that overtakes the head would make no request of it.
                        try gateway.waitUntil("the request: \(what)", admin) {
                            $0["requests_total"] >= aborted
                        }
                        try leave(socket, ending)
                        try gateway.waitUntil("the end of the request: \(what)", admin) {
                            $0["client_aborts_total"] + $0["client_timeouts_total"] >= aborted
                        }
                        try #require(origin.connectionCount == 0, "\(what)")
                    }
                }
                try gateway.waitUntil("nothing held", admin) {
                    $0["held_memory_bytes"] == 0 && $0["held_disk_bytes"] == 0
                }
                // The app's own request is the first thing that the origin sees.
                let request = SoftwareKey.Request(
                    method: "POST",
                    target: "/held",
                    content: Self.signed
                )
                let proof = key.proof(of: request, signing: .lines(Self.parts, headers: []))
                try expectEqual(gateway.client().send(request, proof).status, 200)
                let seen = try origin.seen(1)
                #expect(seen.count == 1 && seen[0].isComplete)
                expectEqual(seen[0].digest, SHA256.digest(of: Self.signed))
                try expectEqual(Metrics(admin)["bodies_cut_short_total"], 0)
            }
        }

        /// How streamed content goes wrong.
        enum Fault: String, CaseIterable, Sendable {
            case lastByte, close, reset, halfClose, silence, malformedChunk, tooLarge
        }

        @Test
        func `streamed content that goes wrong ends in a reset, never in an orderly end`() throws {
            try Scenario.onBothSides { scenario in
                var (gateway, origin, key) = try start(scenario)
                for (earlier, fault) in Fault.allCases.enumerated() {
                    let count = earlier + 1
                    let socket = try send(fault, &key, gateway) { try origin.awaitHeads(count) }
                    defer { socket.close() }
                    let seen = try origin.seen(count)[earlier]
                    #expect(!seen.isComplete, "\(fault)")
                    #expect(seen.wasReset && !seen.wasEndedInOrder, "\(fault)")
                    expectEqual(seen.head.value("App-Attest-Verdict"), "pass", "\(fault)")
                    let line = try gateway.line(about: "/streamed", after: earlier)
                    #expect(line["content"] as? String == "cut-short", "\(fault)")
                    let page = try gateway.adminClient().send("GET", "/metrics").text
                    let labels = #"{rule="streamed",mode="enforce",verdict="pass"}"#
                    #expect(page.contains("bodies_cut_short_total\(labels) \(count)\n"), "\(fault)")
                }
            }
        }

        /// Sends a request whose content goes wrong once its head has reached the origin.
        ///
        /// - Returns: its connection, which the client keeps unless that is the fault.
        private func send(
            _ fault: Fault,
            _ key: inout SoftwareKey,
            _ gateway: GatewayProcess,
            awaitHead: () throws -> Void
        ) throws -> Wire {
            let content = [UInt8](repeating: 7, count: 40_000)
            let framing: Framing =
                switch fault {
                case .malformedChunk, .tooLarge: .chunked
                case .lastByte, .close, .reset, .halfClose, .silence: .length
                }
            let socket = try Wire(port: gateway.port)
            try socket.send(head(&key, "/streamed", signed: content, count: content.count, framing))
            try awaitHead()
            switch fault {
            case .lastByte: try socket.send(content.dropLast() + [8])
            case .malformedChunk: try socket.send("5\r\nhello\r\nxyz\r\n")
            case .tooLarge:
                try socket.send("10001\r\n")
                try socket.send([UInt8](repeating: 7, count: 0x10001))
            case .close, .reset, .halfClose, .silence:
                try socket.send([UInt8](content[..<20_000]))
                let ending = Ending(rawValue: fault.rawValue)
                try leave(socket, try #require(ending))
            }
            return socket
        }

        @Test
        func `content that breaks off after the head went out ends in a reset under any rule`()
            throws
        {
            try Scenario.onBothSides { scenario in
                var (gateway, origin, key) = try start(scenario)
                let content = [UInt8](repeating: 7, count: 40_000)
                for (number, target) in ["/unsigned", "/watched"].enumerated() {
                    let isUnsigned = target == "/unsigned"
                    let parts: SignedParts = isUnsigned ? [.method, .target] : Self.parts
                    let socket = try Wire(port: gateway.port)
                    try socket.send(
                        head(&key, target, signed: content, count: 40_000, .length, parts: parts)
                    )
                    try socket.send([UInt8](content[..<20_000]))
                    try origin.awaitHeads(number + 1)
                    socket.close()
                    let seen = try origin.seen(number + 1)[number]
                    #expect(!seen.isComplete && seen.wasReset && !seen.wasEndedInOrder, "\(target)")
                    let line = try gateway.line(about: target)
                    #expect(line["content"] as? String == "cut-short", "\(target)")
                }
            }
        }

        @Test func `a gateway that dies while content streams leaves a reset behind`() throws {
            try Scenario.onBothSides { scenario in
                var (gateway, origin, key) = try start(scenario)
                let content = [UInt8](repeating: 7, count: 40_000)
                let socket = try Wire(port: gateway.port)
                try socket.send(head(&key, "/streamed", signed: content, count: 40_000, .length))
                try socket.send([UInt8](content[..<20_000]))
                try origin.awaitHeads(1)
                try gateway.crash()
                let seen = try origin.seen(1)[0]
                #expect(!seen.isComplete && seen.wasReset && !seen.wasEndedInOrder)
            }
        }

        @Test func `small streamed content that came with its head is compared before it goes out`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, origin, key) = try start(scenario)
            let socket = try Wire(port: gateway.port)
            let wrong = Array("to=carol&amount=1".utf8)
            let head = head(&key, "/streamed", signed: Self.signed, count: wrong.count, .length)
            try socket.send(Array(head.utf8) + wrong)
            let answer = try socket.readHead()
            #expect(answer.startLine.hasPrefix("HTTP/1.1 400"))
            expectEqual(origin.connectionCount, 0)
        }

        @Test func `held content reaches the origin as it was, on one connection`() throws {
            try Scenario.onBothSides { scenario in
                var (gateway, origin, key) = try start(scenario)
                let client = gateway.client()
                var number = 0
                for count in [17, 1024, 1025, 30_000] {
                    let content = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
                    for framing in [Framing.length, .chunked, .length, .chunked] {
                        let head = head(&key, "/held", signed: content, count: count, framing)
                        let bytes =
                            framing == .length
                            ? content : truncated(content, framing) + Array("\n".utf8)
                        let answer = try client.send(raw: Array(head.utf8) + bytes)
                        expectEqual(answer.status, 200, "\(count) \(framing)")
                        number += 1
                        let seen = try origin.seen(number)[number - 1]
                        #expect(seen.isComplete && seen.count == count, "\(framing)")
                        expectEqual(seen.digest, SHA256.digest(of: content), "\(count) \(framing)")
                        expectEqual(seen.head.value("Content-Length"), String(count))
                        expectEqual(seen.head.value("App-Attest-Verdict"), "pass")
                    }
                }
                expectEqual(origin.connectionCount, 1)
            }
        }
    }
}
