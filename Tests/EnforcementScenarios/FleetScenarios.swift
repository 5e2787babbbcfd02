import AppAttest
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Three gateways on one PostgreSQL, and what befalls them: in the manner of Jepsen, clients
    /// write down what they sent and were answered, the origin what it executed, and both are
    /// compared with what the database holds.
    @Suite struct Fleets {
        /// Five in an ordinary run; `PORTCULLIS_FLEET_CYCLES=50` for a long one.
        private static let cycles =
            ProcessInfo.processInfo.environment["PORTCULLIS_FLEET_CYCLES"].flatMap { Int($0) } ?? 5

        private static let rules = StockRule.list(.signed, .bare, .window)
        private static let more = """
            enrolment: { rate: 10000/s, burst: 100000 }
            limits: { address_failures: off }
            """

        /// What befalls the fleet.
        enum Fault: CaseIterable, Sendable {
            case gatewayKilled, gatewayPaused, cableSilent, cableCut
            case connectionsEnded, backendKilled, databaseCrashed, databasePaused

            /// Lets it befall the fleet, and mends it when the load has gone on for a while.
            func befall(_ fleet: Fleet, _ load: FleetLoad) throws {
                let victim = Int.random(in: 0..<fleet.count)
                // Longer than the database may take for a statement.
                let longest = Double.random(in: 0.2...4)
                func goOn() { load.awaitAdmitted(50, seconds: longest) }
                switch self {
                case .gatewayKilled:
                    try fleet.crash(victim)
                    goOn()
                    try fleet.start(victim)
                case .gatewayPaused:
                    fleet.gateway(victim)?.child.signal(SIGSTOP)
                    goOn()
                    fleet.gateway(victim)?.child.signal(SIGCONT)
                case .cableSilent, .cableCut:
                    fleet.cables[victim].turn(self == .cableCut ? .cut : .silent)
                    goOn()
                    fleet.cables[victim].turn(.whole)
                case .connectionsEnded: try fleet.database.endConnections()
                case .backendKilled: try fleet.database.killOneBackend()
                case .databaseCrashed:
                    try fleet.database.crash()
                    goOn()
                    try fleet.database.start()
                case .databasePaused:
                    try fleet.database.pause()
                    goOn()
                    try fleet.database.resume()
                }
            }
        }

        /// Compares what is stored with what is known.
        private func examine(
            _ fleet: Fleet,
            _ load: FleetLoad,
            _ counters: inout [String: Int],
            _ remark: Comment
        ) throws {
            // The load goes on: what it has done is looked at before what has come of it.
            let (sent, enrolled, admitted) = (load.sent, load.enrolled, load.admitted)
            #expect(load.faults == [], remark)
            // Nobody may have had a second answer of 200, and the origin no second request.
            #expect(admitted.filter { $0.value > 1 } == [:], remark)
            let seen = fleet.origin.seen.map(\.target)
            let twice = Dictionary(grouping: seen) { $0 }.filter { $1.count > 1 }.keys.sorted()
            #expect(twice == [], remark)
            let reached = Set(seen)
            #expect(Set(admitted.keys).subtracting(reached) == [], remark)
            for sent in sent where sent.isOfRevokedKey {
                #expect(!reached.contains(sent.target), "a revoked key was admitted; \(remark)")
            }
            var stored: [String: Int] = [:]
            for line in try fleet.keys("list").split(separator: "\n") {
                let columns = line.split(separator: "\t")
                stored[String(columns[0])] = Int(columns[4])
            }
            for (key, counter) in counters {
                #expect(stored[key] ?? -1 >= counter, "a counter went down; \(remark)")
            }
            for sent in sent where reached.contains(sent.target) {
                #expect(stored[sent.keyID.base64] ?? -1 >= Int(sent.counter), remark)
            }
            for key in enrolled {
                #expect(stored[key.base64] != nil, "a key answered 201 is lost; \(remark)")
            }
            counters = stored
        }

        /// Presents once more, at every gateway, what the origin has.
        private func replay(_ fleet: Fleet, _ load: FleetLoad) throws {
            let before = fleet.origin.seen.map(\.target)
            let reached = Set(before)
            for number in 0..<fleet.count {
                let gateway = try #require(fleet.gateway(number))
                let client = gateway.client()
                for sent in load.sent where reached.contains(sent.target) {
                    var answer = try client.send(raw: sent.raw)
                    // The gateway is connecting anew; a client tries again.
                    let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
                    while answer.status == 503, Date() < deadline {
                        answer = try client.send(raw: sent.raw)
                    }
                    #expect([401, 403].contains(answer.status), "\(sent.target) again")
                }
            }
            #expect(fleet.origin.seen.count == before.count)
        }

        /// HAProxy in front of a fleet: each request goes to the next gateway.
        private func front(_ fleet: Fleet, _ haproxy: String) throws -> HTTPClient {
            let path = fleet.scenario.path("front")
            let servers = (0..<fleet.count).compactMap { number in
                fleet.gateway(number).map { "server g\(number) 127.0.0.1:\($0.port)" }
            }
            try fleet.scenario.write(
                "haproxy.cfg",
                """
                defaults
                    mode http
                    timeout connect 5s
                    timeout client 60s
                    timeout server 60s
                listen front
                    bind unix@\(path)
                    balance roundrobin
                    \(servers.joined(separator: "\n    "))

                """
            )
            try fleet.scenario.startHAProxy(haproxy, at: path)
            return HTTPClient(path: path)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `behind a load balancer two gateways refuse none of 600 good requests`() throws {
            guard let haproxy = Scenario.tool("haproxy") else { return }
            let fleet = try Fleet(2, rules: Self.rules, more: Self.more)
            defer { fleet.end() }
            let client = try front(fleet, haproxy)
            let gateway = try #require(fleet.gateway(0))
            var keys = try fleet.imported(4)
            for _ in 0..<2 {
                // The challenge comes from one gateway, and the other one gets the attestation.
                let key = Scenario.device.makeKey()
                #expect(try gateway.enrol(key, client).status == 201)
                keys.append(key)
            }
            var refused: [String] = []
            for number in 0..<600 {
                let isSigned = number.isMultiple(of: 2)
                let challenge = isSigned ? try gateway.challenges("assertion", client)[0] : nil
                let path = isSigned ? "/v1/signed" : "/v1/bare"
                let raw = keys[number / 2 % keys.count].get(
                    "\(path)?n=\(number)",
                    challenge: challenge
                )
                let answer = try client.send(raw: raw)
                if answer.status != 200 { refused.append("\(number): \(answer.reason)") }
            }
            #expect(refused == [])
            #expect(fleet.origin.seen.count == 600)
            for number in 0..<fleet.count {
                let admin = try #require(fleet.gateway(number)).adminClient()
                #expect(try Metrics(admin)["verdicts_total"] > 200)
            }
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a failover to a synchronous standby loses nothing that was answered`() throws {
            let fleet = try Fleet(
                3,
                rules: Self.rules,
                more: Self.more,
                servers: .primaryAndStandby
            )
            let load = FleetLoad(fleet)
            defer {
                try? load.end()
                fleet.end()
            }
            load.begin(try fleet.imported(3))
            var counters: [String: Int] = [:]
            #expect(load.awaitAdmitted(60, seconds: ChildProcess.patience))
            let victim = try fleet.imported(1)[0]
            load.join(victim, .bare)
            #expect(load.awaitAdmitted(30, seconds: ChildProcess.patience))
            try fleet.revoke(victim.keyID)
            load.noteRevoked(victim.keyID)
            try examine(fleet, load, &counters, "before")
            try fleet.database.crash()
            let before = load.admitted.count
            try #require(fleet.standby).promote()
            #expect(load.awaitAdmitted(60, seconds: ChildProcess.patience))
            try load.end()
            try examine(fleet, load, &counters, "behind")
            try replay(fleet, load)
            let all = load.admitted.count
            print("failover: \(before) admitted before, \(all - before) behind, none twice")
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `without a database each gateway forwards a request once where a rule says so`()
            throws
        {
            let fleet = try Fleet(2, rules: StockRule.list(.lenient, .bare))
            defer { fleet.end() }
            var keys = try fleet.imported(2)
            let gateways = try (0..<2).map { try #require(fleet.gateway($0)) }
            // In the memory of both.
            for gateway in gateways {
                let raw = keys[0].get("/v1/lenient?known")
                #expect(try gateway.client().send(raw: raw).status == 200)
            }
            let known = fleet.origin.seen.count
            try fleet.database.crash()
            let lenient = keys[0].get("/v1/lenient?n=1")
            let strict = keys[1].get("/v1/bare?n=1")
            for gateway in gateways {
                #expect(try gateway.client().send(raw: lenient).status == 200)
                #expect(try gateway.client().send(raw: strict).status == 503)
                // Once at each.
                #expect(try gateway.client().send(raw: lenient).status != 200)
            }
            let seen = fleet.origin.seen.dropFirst(known)
            #expect(seen.map(\.target) == ["/v1/lenient?n=1", "/v1/lenient?n=1"])
            for request in seen {
                #expect(request.head.all("App-Attest-Verdict") == ["error"])
            }
            try fleet.database.start()
            for gateway in gateways {
                // It is connecting anew; a client signs again.
                let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
                var answer = try gateway.client().send(raw: keys[1].get("/v1/bare?again"))
                while answer.status == 503, Date() < deadline {
                    answer = try gateway.client().send(raw: keys[1].get("/v1/bare?again"))
                }
                #expect(answer.status == 200)
                for raw in [lenient, strict] {
                    #expect(try gateway.client().send(raw: raw).reason == "counter-replayed")
                }
            }
            // Nothing stays open.
            let all = fleet.origin.seen.dropFirst(known).map(\.target)
            #expect(all.filter { $0 == "/v1/lenient?n=1" }.count == 2)
            #expect(!all.contains("/v1/bare?n=1"))
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `an assertion that three gateways get at once is admitted once, whatever fails`()
            throws
        {
            let fleet = try Fleet(3, rules: Self.rules, more: Self.more)
            let load = FleetLoad(fleet)
            defer {
                try? load.end()
                fleet.end()
            }
            load.begin(try fleet.imported(3))
            var counters: [String: Int] = [:]
            var faults: [Fault] = []
            for cycle in 1...Self.cycles {
                if faults.isEmpty { faults = Fault.allCases.shuffled() }
                let fault = faults.removeLast()
                let remark: Comment = "cycle \(cycle), \(fault)"
                // A key that goes while everything else goes wrong.
                let victim = try fleet.imported(1)[0]
                load.join(victim, FleetLoad.Kind.allCases[cycle % 3])
                #expect(load.awaitAdmitted(30, seconds: ChildProcess.patience), remark)
                try fault.befall(fleet, load)
                try fleet.revoke(victim.keyID)
                load.noteRevoked(victim.keyID)
                // All gateways go on by themselves.
                #expect(load.awaitAdmitted(30, seconds: ChildProcess.patience), remark)
                try examine(fleet, load, &counters, remark)
            }
            try load.end()
            try examine(fleet, load, &counters, "at the end")
            try replay(fleet, load)
            #expect(!load.enrolled.isEmpty)
            let all = load.sent.count
            print(
                "fleet: \(Self.cycles) cycles, \(all) assertions at 3 gateways at once, "
                    + "\(fleet.origin.seen.count) executed, none twice; "
                    + "\(load.enrolled.count) keys enrolled"
            )
        }
    }
}

extension Fleet {
    /// Imports keys of the test app, and returns them.
    func imported(_ count: Int) throws -> [SoftwareKey] {
        let keys = (0..<count).map { _ in Scenario.device.makeKey() }
        let lines = keys.map { $0.importLine(as: .test) + "\n" }.joined()
        try scenario.write("keys.jsonl", lines)
        try self.keys("import", scenario.path("keys.jsonl"))
        return keys
    }
}
