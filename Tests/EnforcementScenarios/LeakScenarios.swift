import Expectations
import Foundation
import LoopbackKit
import Synchronization
import Testing

extension Scenarios {
    /// What is left behind by faults of all kinds, again and again.
    @Suite struct Leaks {
        /// Requests in all; the environment asks for more, such as 100000.
        private static let count =
            ProcessInfo.processInfo.environment["PORTCULLIS_LEAK_REQUESTS"].flatMap { Int($0) }
            ?? 2_000
        private static let workers = 24
        /// Seconds for a quarter of them.
        private static let patience = ChildProcess.patience + Double(count) / 50
        /// What the allocator may keep beyond what it had after the first quarter.
        private static let growthMaxKiB = 24 << 10
        private static let rules =
            "- { id: held, match: { path: /signed }, mode: enforce, sign: [method, target, body] }"
        private static let timeouts = """
            timeouts: { first_byte: 150ms, response_idle: 100ms, connect: 100ms, linger: 100ms, \
            head: 100ms, body_idle: 100ms }
            """

        /// What one client does.
        private struct Deed: Sendable {
            let bytes: String
            /// Whether it waits for an answer.
            var waits = true
            var resets = false

            static let all: [Deed] =
                FaultyOrigin.Stage.allCases.flatMap { stage in
                    FaultyOrigin.Ending.allCases.map {
                        get("/stage/\(stage.rawValue)/\($0.rawValue)")
                    }
                }
                + FaultyOrigin.Nonsense.allCases.map { get("/nonsense/\($0.rawValue)") }
                + ["/surplus", "/stale", "/stale", "/refused", "/deaf", "/signed"].map(get)
                + (0..<12).map { get("/plain/\($0)") }
                + [
                    post("/stale", 2, "hi"), post("/signed", 5, "hello"),
                    post("/unread", 3_000_000, String(repeating: "a", count: 300_000)),
                    post("/slow", 10, "hello"), Deed(bytes: "GET /slow HTTP/1.1\r\n"),
                    Deed(bytes: "nonsense\r\n\r\n"), Deed(bytes: "\u{16}\u{3}\u{1}"),
                ]
                + [true, false].flatMap { resets in
                    [
                        "GET /half HT", get("/endless").bytes,
                        get("/stage/before-head/stall").bytes,
                        post("/gone", 10, "hello").bytes, post("/gone", 10, "").bytes,
                    ].map { Deed(bytes: $0, waits: false, resets: resets) }
                }

            static func get(_ path: String) -> Deed {
                Deed(bytes: "GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
            }

            static func post(_ path: String, _ length: Int, _ content: String) -> Deed {
                let head = "POST \(path) HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n"
                return Deed(bytes: head + content)
            }

            func perform(_ port: UInt16) throws {
                // Whatever comes of it: what a client gets is for the other scenarios.
                guard !waits else {
                    _ = try Glimpse(port: port, bytes)
                    return
                }
                let client = try Wire(port: port)
                try? client.send(bytes)
                if resets { client.reset() }
            }
        }

        /// Which deed is next.
        private final class Next: Sendable {
            let number: Atomic<Int>

            init(_ number: Int) { self.number = Atomic(number) }
        }

        private func perform(_ numbers: Range<Int>, _ gateway: GatewayProcess) throws {
            let next = Next(numbers.lowerBound)
            let workers = (0..<Self.workers).map { _ in
                Thread.Answer {
                    while true {
                        let number = next.number.wrappingAdd(1, ordering: .relaxed).oldValue
                        guard number < numbers.upperBound else { return }
                        try Deed.all[number % Deed.all.count].perform(gateway.port)
                    }
                }
            }
            for worker in workers { try worker.value(within: Self.patience) }
        }

        @Test func `after any number of faults no descriptor, memory or connection is left`() throws
        {
            let stand = try Stand(
                rules: Self.rules,
                more: Self.timeouts + "\nlog: { access: ./access.log }",
                dead: try DeadOrigins()
            )
            defer { stand.end() }
            let (gateway, admin) = (stand.gateway, stand.admin)
            var resident: [Int] = []
            let quarter = Self.count / 4
            for part in 0..<4 {
                try perform(part * quarter..<(part + 1) * quarter, gateway)
                try stand.awaitRest()
                resident.append(try gateway.residentKiB())
            }
            let metrics = try Metrics(admin)
            let pooled = Int(metrics["origin_connections_pooled"])
            print(
                """
                leaks: \(Self.count) requests, \(stand.descriptors.count) descriptors before and \
                after, \(pooled) pooled, resident after each quarter \(resident) KiB
                """
            )
            #expect(pooled <= Self.workers)
            #expect(Scenario.isSanitized || resident[3] - resident[0] < Self.growthMaxKiB)
            // Each kind of fault has happened.
            for name in Metrics.faults where name != "accept_pauses" && name != "tls_failures" {
                #expect(metrics[name + "_total"] > 0, "\(name)")
            }
            try expectEqual(gateway.client().send("GET", "/plain").status, 200)
            try stand.stop()
        }
    }
}
