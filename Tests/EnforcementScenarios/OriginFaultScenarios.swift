import Foundation
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

        private static let rules = """
            - { id: refusing, match: { path: /refused }, origin: nobody, mode: off }
            - { id: deaf, match: { path: /deaf }, origin: deaf, mode: off }
            """
        private static let impatient =
            "timeouts: { first_byte: 600ms, response_idle: 200ms, connect: 200ms, linger: 100ms }"

        /// A gateway, and how it stood before anything happened.
        private final class Stand {
            let scenario: Scenario
            let gateway: GatewayProcess
            let admin: HTTPClient
            let descriptors: Int
            let deaf = try? DeafPort()

            init(isImpatient: Bool = false) throws {
                scenario = try Scenario()
                let origin = try scenario.faultyOrigin()
                try scenario.configure(
                    origin: origin.address,
                    rules: OriginFaults.rules,
                    more: isImpatient ? OriginFaults.impatient : "",
                    // The next request meets the connection that the last one has left.
                    lanes: 1,
                    origins: """
                          nobody: { servers: ["127.0.0.1:\(try DeafPort.refusing())"] }
                          deaf: { servers: ["127.0.0.1:\(deaf?.port ?? 1)"] }
                        """
                )
                gateway = try scenario.serve()
                admin = try gateway.adminClient()
                descriptors = try gateway.descriptors(admin)
            }

            func end() throws {
                // Nothing is left of all that: no client, no connection to an origin.
                try gateway.waitUntil("the end of all connections", admin) { metrics in
                    let open = try gateway.descriptors(admin)
                    return metrics["client_connections_open"] == 0 && open == descriptors
                }
                #expect(try gateway.stop() == 0)
                scenario.end()
            }

            func check(
                _ path: String,
                _ expected: Outcome,
                _ request: String? = nil,
                location: SourceLocation = #_sourceLocation
            ) throws {
                let before = try Metrics(admin)
                let request = request ?? "GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n"
                let glimpse = try Glimpse(port: gateway.port, request)
                let line = try gateway.line(about: path)
                let moved = try Metrics(admin).moved(since: before)
                let wanted = Dictionary(uniqueKeysWithValues: expected.counters.map { ($0, 1.0) })
                #expect(glimpse == expected.glimpse, "\(path)", sourceLocation: location)
                #expect(
                    line["status"] as? Int == expected.glimpse.status,
                    "\(path)",
                    sourceLocation: location
                )
                #expect(
                    line["problem"] as? String == expected.problem,
                    "\(path)",
                    sourceLocation: location
                )
                // Whoever reads the log learns which server it was.
                #expect(line["origin"] != nil, "\(path)", sourceLocation: location)
                #expect(moved == wanted, "\(path)", sourceLocation: location)
            }
        }

        @Test func `an origin that ends or resets at any stage`() throws {
            let stand = try Stand()
            for stage in FaultyOrigin.Stage.allCases {
                for ending in [FaultyOrigin.Ending.reset, .end] {
                    let path = "/stage/\(stage.rawValue)/\(ending.rawValue)"
                    try stand.check(path, Outcome(stage, ending))
                }
            }
            try stand.end()
        }

        @Test func `an origin that stands still at any stage`() throws {
            let stand = try Stand(isImpatient: true)
            for stage in FaultyOrigin.Stage.allCases {
                try stand.check("/stage/\(stage.rawValue)/stall", Outcome(stage, .stall))
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
            try stand.check("/unread", late, upload)
            try stand.end()
        }

        @Test func `an origin that sends nonsense`() throws {
            let stand = try Stand()
            for nonsense in FaultyOrigin.Nonsense.allCases {
                let expected: Outcome
                switch nonsense {
                case .octets:
                    expected = Self.malformed("response-malformed", "control-octet")
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
                try stand.check("/nonsense/\(nonsense.rawValue)", expected)
            }
            // What follows a whole response is nobody's, and its connection is not used again.
            for number in 0..<3 { try stand.check("/surplus/\(number)", .fine) }
            try stand.end()
        }

        private static func malformed(_ reason: String, _ problem: String) -> Outcome {
            Outcome(
                glimpse: .refused(502, reason),
                problem: problem,
                counters: ["origin_malformed_responses"]
            )
        }

        @Test func `an origin that takes no connection`() throws {
            let stand = try Stand(isImpatient: true)
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
            try stand.check("/refused", refused)
            try stand.check("/deaf", late)
            try stand.end()
        }

        @Test func `a pooled connection that ends in the moment it is used again`() throws {
            let stand = try Stand()
            try stand.check("/stale/first", .fine)
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
            try stand.check("/stale/get", retried)
            let post = "POST /stale/post HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
            try stand.check("/stale/post", lost, post)
            try stand.check("/stale/last", .fine)
            try stand.end()
        }
    }
}
