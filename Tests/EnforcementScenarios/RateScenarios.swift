import Dispatch
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Synchronization
import TestSupport
import Testing

extension Scenarios {
    /// How often one device may make requests of a rule.
    @Suite(.overEachClient) struct Rates {
        private static let signing = SigningForm.lines(.all, headers: [])

        /// The rates are so slow that none is refilled while a scenario runs, except the first.
        private static let rules = """
            - id: quick
              match: { path: /v1/quick }
              mode: enforce
              rate: { key: 1/s, burst: 2 }
            - id: slow
              match: { path: /v1/slow/** }
              mode: enforce
              accept: [assertion, session]
              rate: { key: 1/d, burst: 3 }
            - id: observed
              match: { path: /v1/observed }
              mode: observe
              rate: { key: 1/d, burst: 1 }
            - id: spared
              match: { path: /v1/spared }
              mode: enforce
              rollout: { percent: 0% }
              rate: { key: 1/d, burst: 1 }
            - id: held
              match: { path: /v1/held }
              mode: enforce
              body: { digest: held, limit: 1MiB, memory: 1KiB }
              rate: { key: 1/d, burst: 1 }
            - id: crowd
              match: { path: /v1/crowd }
              mode: enforce
              sign: [method, target]
              rate: { key: 1/d, burst: 10 }
            """

        private final class Stage {
            let scenario: Scenario
            let origin: RecordingOrigin
            let gateway: GatewayProcess
            let client: HTTPClient
            var key: SoftwareKey

            init(failures: String = "off") throws {
                scenario = try Scenario()
                (gateway, origin, key) = try scenario.start(
                    rules: Rates.rules,
                    more: "limits: { address_failures: \(failures) }"
                )
                client = gateway.client()
            }

            func end() { scenario.end() }

            /// A signed request, which can be sent more than once.
            func signed(_ path: String, content: String = "") throws -> (
                request: SoftwareKey.Request, proof: RequestProof
            ) {
                let request = SoftwareKey.Request(
                    method: "POST",
                    target: path,
                    content: Array(content.utf8),
                    challenge: try gateway.challenges("assertion", client)[0]
                )
                return (request, key.proof(of: request, signing: Rates.signing))
            }

            func send(_ path: String, content: String = "") throws -> Answer {
                let signed = try signed(path, content: content)
                return try client.send(signed.request, signed.proof)
            }
        }

        private func expectThrottled(
            _ answer: Answer,
            within seconds: ClosedRange<Int>,
            location: SourceLocation = #_sourceLocation
        ) throws {
            expectEqual(answer.status, 429, sourceLocation: location)
            expectEqual(answer.reason, "key-throttled", sourceLocation: location)
            expectEqual(answer.member("next"), "retry-later", sourceLocation: location)
            expectEqual(answer.value("App-Attest-Error")?.isEmpty, false, sourceLocation: location)
            let wait = try #require(answer.value("Retry-After").flatMap { Int($0) })
            #expect(seconds.contains(wait), "\(wait)", sourceLocation: location)
        }

        @Test func `over the rate a request waits, and the same one passes afterwards, once`()
            throws
        {
            let stage = try Stage()
            defer { stage.end() }
            for _ in 0..<2 { try expectEqual(stage.send("/v1/quick").status, 200) }
            // Where the machine is so slow that a second passed, one more is admitted.
            var signed = try stage.signed("/v1/quick")
            var refused = try stage.client.send(signed.request, signed.proof)
            try eventually {
                guard refused.status == 200 else { return true }
                signed = try stage.signed("/v1/quick")
                refused = try stage.client.send(signed.request, signed.proof)
                return false
            }
            try expectThrottled(refused, within: 1...2)
            let before = stage.origin.seen.count
            try eventually {
                refused = try stage.client.send(signed.request, signed.proof)
                return refused.status != 429
            }
            expectEqual(refused.status, 200)
            let again = try stage.client.send(signed.request, signed.proof)
            expectEqual(again.status, 401)
            #expect(
                ["counter-replayed", "challenge-spent"].contains(again.reason),
                "\(again.reason)"
            )
            try expectEqual(stage.origin.seen(before + 1).count, before + 1)
            let line = try stage.gateway.line(about: "/v1/quick")
            expectEqual(line["rule"] as? String, "quick")
            try expectEqual(stage.gateway.stop(), 0)
        }

        @Test func `assertions and sessions of a device count together, replays and forgeries not`()
            throws
        {
            let stage = try Stage()
            defer { stage.end() }
            func open() throws -> SoftwareSession {
                let request = SoftwareKey.Request(
                    method: "POST",
                    target: Sessions.target,
                    challenge: try stage.gateway.challenges("assertion", stage.client)[0]
                )
                let proof = stage.key.proof(of: request, signing: Self.signing)
                let answer = try stage.client.send(request, proof)
                return try #require(SoftwareSession(answer: answer.body))
            }
            var sessions = [try open(), try open()]
            func call(_ place: Int) throws -> (SoftwareKey.Request, SessionProof) {
                let request = SoftwareKey.Request(method: "GET", target: "/v1/slow/call")
                let proof = sessions[place].proof(of: request, signing: Self.signing)
                return (request, try #require(proof))
            }
            func send(_ call: (request: SoftwareKey.Request, proof: SessionProof)) throws -> Answer
            {
                try stage.client.send(call.request.method, call.request.target, call.proof.fields)
            }
            let first = try stage.signed("/v1/slow/order")
            try expectEqual(stage.client.send(first.request, first.proof).status, 200)
            let used = try call(0)
            try expectEqual(send(used).status, 200)
            for _ in 0..<5 {
                try expectEqual(stage.client.send(first.request, first.proof).status, 401)
                try expectEqual(send(used).reason, "session-replayed")
                var forged = try call(1)
                forged.1.signature = String(repeating: "A", count: 43) + "="
                try expectEqual(send(forged).reason, "session-mismatch")
            }
            // The third and last one, by the other session.
            try expectEqual(send(call(1)).status, 200)
            for place in 0..<2 { try expectThrottled(send(call(place)), within: 80_000...86_401) }
            try expectThrottled(stage.send("/v1/slow/order"), within: 80_000...86_401)
            // Another device has a rate of its own.
            stage.key = try enrolled(stage)
            try expectEqual(stage.send("/v1/slow/order").status, 200)
            expectEqual(stage.origin.seen.count, 4)
            try expectEqual(stage.gateway.stop(), 0)
        }

        private func enrolled(_ stage: Stage) throws -> SoftwareKey {
            let key = Scenario.device.makeKey()
            try expectEqual(stage.gateway.enrol(key, stage.client).status, 201)
            return key
        }

        @Test func `a rule that observes, or whose rollout spares the key, counts and forwards`()
            throws
        {
            let stage = try Stage()
            defer { stage.end() }
            for path in ["/v1/observed", "/v1/spared"] {
                for _ in 0..<3 {
                    let answer = try stage.send(path)
                    expectEqual(answer.status, 200)
                    expectEqual(answer.value("Retry-After"), nil)
                }
            }
            let seen = try stage.origin.seen(6)
            let found = seen.map { $0.head.all("App-Attest-Reason") }
            let one = [[], ["key-throttled"], ["key-throttled"]]
            expectEqual(found, one + one)
            let admin = try stage.gateway.adminClient()
            let text = try admin.send("GET", "/metrics").text
            for rule in ["observed", "spared"] {
                let words = [
                    #"rule="\#(rule)""#, #"verdict="refuse""#, #"reason="key-throttled""#,
                    #"enforced="false""#,
                ]
                let lines = text.split(separator: "\n").filter { line in
                    line.hasPrefix("portcullis_verdicts_total{") && words.allSatisfy(line.contains)
                }
                expectEqual(lines.map { $0.hasSuffix(" 2") }, [true], "\(rule): \(lines)")
            }
            #expect(text.contains("\nportcullis_rates_evicted_total 0\n"))
            try expectEqual(stage.gateway.stop(), 0)
        }

        @Test func `content of a request that is too many does not reach the origin`() throws {
            let stage = try Stage()
            defer { stage.end() }
            let content = String(repeating: "x", count: 20_000)
            try expectEqual(stage.send("/v1/held", content: content).status, 200)
            try expectThrottled(stage.send("/v1/held", content: content), within: 80_000...86_401)
            expectEqual(stage.origin.seen.count, 1)
            try expectEqual(stage.gateway.stop(), 0)
        }

        @Test func `requests that come at once get one burst`() throws {
            let stage = try Stage()
            defer { stage.end() }
            var key = stage.key
            let requests = (0..<40).map { number in
                let request = SoftwareKey.Request(method: "GET", target: "/v1/crowd")
                return (request, key.proof(of: request, signing: Self.bare))
            }
            let statuses = Mutex<[Int]>([])
            let side = ClientSide.current
            let port = stage.gateway.clientPort
            DispatchQueue.concurrentPerform(iterations: 8) { place in
                let client = HTTPClient(port: port, side)
                for (request, proof) in requests[(place * 5)..<(place * 5 + 5)] {
                    let status = (try? client.send(request, proof).status) ?? 0
                    statuses.withLock { $0.append(status) }
                }
            }
            let all = statuses.withLock { $0 }
            expectEqual(all.count { $0 == 200 }, 10)
            expectEqual(all.count { $0 == 429 }, 30)
            try expectEqual(stage.origin.seen(10).count, 10)
            try expectEqual(stage.gateway.stop(), 0)
        }

        /// The streams are all open before the first answer is read.
        @Test(.overOneClient)
        func `streams of one HTTP/2 connection get one burst, and no more`() throws {
            let stage = try ClientSide.$current.withValue(.http2) { try Stage() }
            defer { stage.end() }
            var key = stage.key
            let client = try HTTP2Client(try Wire(port: stage.gateway.clientPort))
            let streams = try (0..<60).map { _ in
                let request = SoftwareKey.Request(method: "GET", target: "/v1/crowd")
                let fields = key.proof(of: request, signing: Self.bare).fields
                    .map { ($0.name.lowercased(), $0.value) }
                return try client.open(HTTP2Client.get("/v1/crowd", fields))
            }
            let statuses = try streams.map { try client.answer($0).status }
            expectEqual(statuses.count { $0 == 200 }, 10)
            expectEqual(statuses.count { $0 == 429 }, 50)
            try expectEqual(stage.origin.seen(10).count, 10)
            // Another connection of the same key finds nothing left, another key its own burst.
            let other = try HTTP2Client(try Wire(port: stage.gateway.clientPort))
            func ask(_ key: inout SoftwareKey) throws -> Int {
                let request = SoftwareKey.Request(method: "GET", target: "/v1/crowd")
                let fields = key.proof(of: request, signing: Self.bare).fields
                    .map { ($0.name.lowercased(), $0.value) }
                return try other.ask(HTTP2Client.get("/v1/crowd", fields)).status
            }
            try expectEqual(ask(&key), 429)
            var fresh = try enrolled(stage)
            try expectEqual(ask(&fresh), 200)
            try expectEqual(stage.gateway.stop(), 0)
        }

        /// A few devices that were a bit too fast had the address of thousands throttled.
        @Test func `a device over its rate takes no verifications from others behind its address`()
            throws
        {
            let stage = try Stage(failures: "5/m")
            defer { stage.end() }
            for _ in 0..<3 { try expectEqual(stage.send("/v1/slow/a").status, 200) }
            for _ in 0..<20 {
                try expectThrottled(stage.send("/v1/slow/a"), within: 80_000...86_401)
            }
            stage.key = try enrolled(stage)
            try expectEqual(stage.send("/v1/slow/a").status, 200)
            try expectEqual(stage.gateway.stop(), 0)
        }

        private static let bare = SigningForm.lines([.method, .target], headers: [])

        @Test(.overOneClient)
        func `a reload keeps what was used of a rate that it does not change`() throws {
            let stage = try Stage()
            defer { stage.end() }
            func reload(_ generation: Int) throws {
                stage.gateway.child.signal(SIGHUP)
                _ = try stage.gateway.child.wait(for: "reload") { _, complained in
                    complained.contains("generation \(generation)") ? true : nil
                }
            }
            for _ in 0..<3 { try expectEqual(stage.send("/v1/slow/a").status, 200) }
            let more = "limits: { address_failures: off }"
            let others = Self.rules + "\n- { id: new, match: { path: /new }, mode: off }"
            try stage.scenario.configure(stage.origin, rules: others, more: more)
            try reload(2)
            try expectEqual(stage.client.send("GET", "/new").status, 200)
            try expectThrottled(stage.send("/v1/slow/a"), within: 80_000...86_401)
            let wider = Self.rules.replacing("1/d, burst: 3", with: "1/d, burst: 4")
            try stage.scenario.configure(stage.origin, rules: wider, more: more)
            try reload(3)
            try expectEqual(stage.send("/v1/slow/a").status, 200)
            try expectEqual(stage.gateway.stop(), 0)
        }
    }

    /// Rates that hold for all gateways of a fleet together.
    @Suite struct FleetRates {
        private static let signing = SigningForm.lines([.method, .target], headers: [])
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              sign: [method, target]
              rate: { key: 30/h, burst: 30 }
            """

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a device gets about one rate from two gateways, and replays cost it nothing`() throws
        {
            let fleet = try Fleet(
                2,
                rules: Self.rules,
                more: "limits: { address_failures: off }"
            )
            defer { fleet.end() }
            var key = try fleet.imported(1)[0]
            let gateways = try (0..<2).map { try #require(fleet.gateway($0)) }
            for number in 0..<2 {
                let isSeen = try eventually {
                    try Metrics(fleet.admin(number))["fleet_gateways"] == 2
                }
                #expect(isSeen)
            }
            let clients = gateways.map { $0.client() }
            let request = SoftwareKey.Request(method: "GET", target: "/v1/orders")
            let captured = key.proof(of: request, signing: Self.signing)
            try expectEqual(clients[0].send(request, captured).status, 200)
            // The other gateway has to ask the database about the counter.
            for _ in 0..<40 {
                try expectEqual(clients[1].send(request, captured).reason, "counter-replayed")
            }
            var admitted = 1
            func flood() throws -> Int {
                var count = 0
                for client in clients {
                    let proof = key.proof(of: request, signing: Self.signing)
                    let answer = try client.send(request, proof)
                    if answer.status == 200 { count += 1 } else { expectEqual(answer.status, 429) }
                }
                return count
            }
            for _ in 0..<40 { admitted += try flood() }
            // Each has given its half, or more where they have heard of each other.
            #expect((28...60).contains(admitted), "\(admitted)")
            let isOver = try eventually(within: 30) {
                let more = try flood()
                admitted += more
                return more == 0
            }
            #expect(isOver)
            print("fleet: \(admitted) requests of one device at 30 at once")
            #expect((28...62).contains(admitted), "\(admitted)")
            expectEqual(fleet.origin.seen.count, admitted)
        }
    }
}
