import Expectations
import Foundation
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// What happens when the process may open no more descriptors.
    @Suite struct Descriptors {
        @Test func `without descriptors accepting pauses, is told of once, and goes on`() throws {
            let few = ["/bin/sh", "-c", #"ulimit -n 64 && exec "$0" "$@""#]
            let stand = try Stand(loops: 1) { try $0.serve(within: few) }
            defer { stand.end() }
            let (gateway, admin) = (stand.gateway, stand.admin)
            let before = try Metrics(admin)
            // These were taken, and have used the connection to the origin that is pooled now.
            let early = (0..<16).map { _ in gateway.client() }
            for client in early { try expectEqual(client.send("GET", "/first").status, 200) }

            var crowd = try (0..<80).map { _ in try Wire(port: gateway.port) }
            try gateway.waitUntil("several pauses", admin) { $0["accept_pauses_total"] >= 5 }
            let shortage = "accepting pauses, accept4: Too many open files"
            try expectEqual(gateway.complaints(of: shortage), 1)
            let limit = "64 descriptors may be open, 8 of them are kept"
            try expectEqual(gateway.complaints(of: limit), 1)
            try expectEqual(early[0].send("GET", "/early").status, 200)
            let waiting = try Wire(port: gateway.port)
            try waiting.send("GET /late HTTP/1.1\r\nHost: a\r\n\r\n")
            try expectOutOfDescriptors(gateway, admin, early, stand.origin)

            for socket in crowd { socket.close() }
            crowd = []
            try expectEqual(waiting.readHead().startLine, "HTTP/1.1 200 OK")
            _ = try gateway.child.wait(for: "end of the shortage") { _, complained in
                complained.contains("accept connections again") ? true : nil
            }
            try expectEqual(gateway.client().send("GET", "/after").status, 200)
            try expectEqual(gateway.complaints(of: "accepting pauses"), 1)
            try expectEqual(gateway.complaints(of: "accept connections again"), 1)
            for client in early { client.close() }
            waiting.close()
            try stand.awaitRest()
            try expectEqual(Metrics(admin)["client_connections_refused_total"], 0)
            expectEqual(before["accept_pauses_total"], 0)
            try stand.stop()
        }

        @Test(arguments: [10, 20, 28, 40])
        func `too few descriptors to serve are told of at the start`(_ limit: Int) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin: "127.0.0.1:\(origin.port)", rules: "[]", loops: 4)
            let program = try #require(Scenario.program)
            func run(_ command: String) throws -> Scenario.Result {
                let file = scenario.path("portcullis.yaml")
                let words = ["ulimit -n \(limit); exec \"$@\"", "sh", program, command, file]
                return try scenario.run("/bin/sh", ["-c"] + words)
            }
            let result = try run("serve")
            let found = "only \(limit) descriptors may be open"
            expectEqual(result.status, 1)
            #expect(result.complained.contains(found))
            #expect(result.complained.contains("Raise the limit (ulimit -n 1024, LimitNOFILE="))
            // The gateway may be started with another limit.
            let checked = try run("check")
            expectEqual(checked.status, 0)
            #expect(checked.printed.contains("warning: event_loops: found \(found)"))
        }

        /// Who is connected finds the descriptors that clients could not take. When all who are
        /// want one at once, they are too few.
        private func expectOutOfDescriptors(
            _ gateway: GatewayProcess,
            _ admin: HTTPClient,
            _ clients: [HTTPClient],
            _ origin: FaultyOrigin
        ) throws {
            // One of the eight went to the client that showed that no other is left.
            let kept = 7
            let held = clients.enumerated().map { number, client in
                Thread.Answer { try client.send("GET", "/held/\(number)") }
            }
            // The pooled connection, and those that were kept.
            try origin.awaitHeld(1 + kept)
            try gateway.waitUntil("answers to the others", admin) {
                Int($0["origin_connect_failures_total"]) + origin.held == clients.count
            }
            for _ in clients { origin.release() }
            var refused = 0
            for (number, answer) in held.enumerated() {
                let answer = try answer.value()
                guard answer.status != 200 else { continue }
                refused += 1
                #expect(answer.status == 503 && answer.reason == "out-of-descriptors")
                let line = try gateway.line(about: "/held/\(number)")
                #expect(line["problem"] as? String == "out-of-descriptors")
            }
            #expect(refused > 0)
            try expectEqual(Metrics(admin)["origin_connect_failures_total"], Double(refused))
        }

        /// The system bounds how many sockets a user may watch (epoll(7), max_user_watches).
        @Test(.enabled(if: Scenario.faultyProgram != nil))
        func `connections to the origin that can't be watched leave no descriptor behind`() throws {
            let failures = 20
            let stand = try Stand(more: "limits: { pooled: 0 }", loops: 1) {
                try $0.serve(endingAt: "registration", failures)
            }
            defer { stand.end() }
            let (gateway, admin) = (stand.gateway, stand.admin)
            // Watched before anything fails, and kept.
            let client = gateway.client()
            try expectEqual(client.send("GET", "/before").status, 200)
            gateway.child.signal(SIGWINCH)
            var refused = 0
            try eventually {
                let answer = try client.send("GET", "/during")
                // The signal may arrive after the first requests.
                guard answer.status != 200 || refused > 0 else { return false }
                #expect(answer.status == 503 && answer.reason == "out-of-descriptors")
                refused += 1
                return refused == failures
            }
            expectEqual(refused, failures)
            try expectEqual(client.send("GET", "/after").status, 200)
            try expectEqual(Metrics(admin)["origin_connect_failures_total"], Double(failures))
            client.close()
            try stand.awaitRest()
        }

        /// The client goes while the gateway has bytes for it, so that a write is what fails.
        @Test func `a tunnel whose client can't be written to leaves no descriptor behind`() throws
        {
            let stand = try Stand(loops: 1)
            defer { stand.end() }
            for number in 1...3 {
                let client = try Wire(port: stand.gateway.port)
                try client.send(Self.handshake)
                try expectEqual(client.readHead().startLine, "HTTP/1.1 101 Switching Protocols")
                try stand.origin.awaitHeld(1)
                try expectEqual(Metrics(stand.admin)["tunnels_total"], Double(number))
                client.reset()
                try stand.awaitRest()
                try stand.origin.awaitHeld(0)
            }
        }

        private static let handshake = """
            GET /tunnel HTTP/1.1\r
            Host: a\r
            Connection: Upgrade\r
            Upgrade: websocket\r
            Sec-WebSocket-Version: 13\r
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
            \r

            """
    }
}
