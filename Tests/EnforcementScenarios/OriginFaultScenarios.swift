import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// What a client gets, the log says and the metrics count when an origin fails.
    @Suite struct OriginFaults {
        /// What must come of a fault.
        private struct Outcome {
            let glimpse: Glimpse
            /// The log's `problem`; `nil` for none.
            let problem: String?
            /// The counters that move, by one each.
            let counters: [String]

            static let fine = Outcome(glimpse: .fine, problem: nil, counters: [])

            init(glimpse: Glimpse, problem: String?, counters: [String]) {
                self.glimpse = glimpse
                self.problem = problem
                self.counters = counters
            }

            init(_ stage: FaultyOrigin.Stage, _ ending: FaultyOrigin.Ending) {
                let isStall = ending == .stall
                switch stage {
                case .afterEnd: self = .fine
                case .beforeHead, .inHead:
                    let problem = isStall ? "origin-timeout" : "origin-closed"
                    glimpse = .refused(isStall ? 504 : 502, problem)
                    self.problem = problem
                    counters = [isStall ? "origin_timeouts" : "origin_failures"]
                case .afterHead, .inContent, .inChunkSize, .inChunk, .afterChunk, .inTrailers:
                    glimpse = .cutOff
                    problem = isStall ? "origin-timeout" : "origin-closed"
                    counters = [isStall ? "origin_timeouts" : "origin_failures"]
                }
            }
        }

        private static let impatient =
            "timeouts: { first_byte: 600ms, response_idle: 200ms, connect: 200ms, linger: 100ms }"

        /// One event loop, so that the next request meets the connection that the last one has
        /// left.
        private static func stand(isImpatient: Bool = false) throws -> Stand {
            try Stand(more: isImpatient ? impatient : "", loops: 1, dead: try DeadOrigins())
        }

        private func check(
            _ stand: Stand,
            _ path: String,
            _ expected: Outcome,
            _ request: String? = nil,
            location: SourceLocation = #_sourceLocation
        ) throws {
            try stand.mark()
            let request = request ?? "GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n"
            let glimpse = try Glimpse(port: stand.gateway.port, request)
            let status = expected.glimpse.status
            let line = try stand.expectLine(path, status, expected.problem, location: location)
            expectEqual(glimpse, expected.glimpse, "\(path)", sourceLocation: location)
            // Whoever reads the log learns which server it was.
            #expect(line["origin"] != nil, "\(path)", sourceLocation: location)
            try stand.expectMoved(expected.counters, "\(path)", location: location)
        }

        /// Nothing is left of all that: no client, no connection to an origin.
        private func finish(_ stand: Stand) throws {
            try stand.awaitRest()
            try stand.stop()
        }

        @Test(arguments: ["HTTP/1.0", "HTTP/1.1"])
        func `a response that is cut off by the end of the gateway never looks whole`(
            version: String
        ) throws {
            let stand = try Self.stand()
            defer { stand.end() }
            let client = try Wire(port: stand.gateway.port)
            try client.send("GET /stage/after-chunk/stall \(version)\r\nHost: a\r\n\r\n")
            var text = ""
            while !text.contains("hello") {
                try client.receive()
                text = String(decoding: client.inbox, as: UTF8.self)
            }
            // To HTTP/1.0 clients, such a response ends with its connection.
            expectEqual(text.contains("chunked"), version == "HTTP/1.1")
            try stand.gateway.crash()
            let end = #expect(throws: WireFault.self) { try client.receive() }
            if version == "HTTP/1.0" { expectEqual(end, .reset) }
        }

        @Test func `an origin that ends or resets at any stage`() throws {
            let stand = try Self.stand()
            defer { stand.end() }
            for stage in FaultyOrigin.Stage.allCases {
                for ending in [FaultyOrigin.Ending.reset, .end] {
                    let path = "/stage/\(stage.rawValue)/\(ending.rawValue)"
                    try check(stand, path, Outcome(stage, ending))
                }
            }
            try finish(stand)
        }

        @Test func `an origin that stands still at any stage`() throws {
            let stand = try Self.stand(isImpatient: true)
            defer { stand.end() }
            for stage in FaultyOrigin.Stage.allCases {
                try check(stand, "/stage/\(stage.rawValue)/stall", Outcome(stage, .stall))
            }
            // More than all buffers on the way hold.
            let upload =
                "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: \(64 << 20)\r\n\r\n"
                + String(repeating: "a", count: 24 << 20)
            let late = Outcome(
                glimpse: .refused(504, "origin-timeout"),
                problem: "origin-timeout",
                counters: ["origin_timeouts"]
            )
            try check(stand, "/unread", late, upload)
            try finish(stand)
        }

        @Test func `an origin that sends nonsense`() throws {
            let stand = try Self.stand()
            defer { stand.end() }
            for nonsense in FaultyOrigin.Nonsense.allCases {
                let expected: Outcome
                switch nonsense {
                case .bytes:
                    expected = Self.malformed("response-malformed", "control-byte")
                case .otherProtocol:
                    expected = Self.malformed("response-malformed", "status-line-syntax")
                case .twoLengths:
                    expected = Self.malformed("response-malformed", "content-length-repeated")
                case .endlessHead:
                    expected = Self.malformed("response-malformed", "head-too-long")
                case .interims:
                    expected = Self.malformed(
                        "too-many-interim-responses",
                        "too-many-interim-responses"
                    )
                case .badChunk:
                    expected = Outcome(
                        glimpse: .cutOff,
                        problem: "chunk-size-syntax",
                        counters: ["origin_malformed_responses"]
                    )
                }
                try check(stand, "/nonsense/\(nonsense.rawValue)", expected)
            }
            // What follows a whole response is nobody's, and its connection is not used again.
            for number in 0..<3 { try check(stand, "/surplus/\(number)", .fine) }
            try finish(stand)
        }

        private static func malformed(_ reason: String, _ problem: String) -> Outcome {
            Outcome(
                glimpse: .refused(502, reason),
                problem: problem,
                counters: ["origin_malformed_responses"]
            )
        }

        @Test func `an origin that takes no connection`() throws {
            let stand = try Self.stand(isImpatient: true)
            defer { stand.end() }
            let refused = Outcome(
                glimpse: .refused(502, "origin-unreachable"),
                problem: "origin-unreachable",
                counters: ["origin_connect_failures"]
            )
            let late = Outcome(
                glimpse: .refused(504, "origin-timeout"),
                problem: "origin-timeout",
                counters: ["origin_connect_failures"]
            )
            try check(stand, "/refused", refused)
            try check(stand, "/deaf", late)
            try finish(stand)
        }

        @Test func `a pooled connection that ends in the moment it is used again`() throws {
            let stand = try Self.stand()
            defer { stand.end() }
            try check(stand, "/stale/first", .fine)
            let retried = Outcome(
                glimpse: .fine,
                problem: nil,
                counters: ["origin_failures", "origin_retries"]
            )
            let lost = Outcome(
                glimpse: .refused(502, "origin-closed"),
                problem: "origin-closed",
                counters: ["origin_failures"]
            )
            try check(stand, "/stale/get", retried)
            let post = "POST /stale/post HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
            try check(stand, "/stale/post", lost, post)
            try check(stand, "/stale/last", .fine)
            try finish(stand)
        }
    }
}
