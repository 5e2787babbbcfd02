import Foundation
import Testing

extension Scenarios {
    /// What happens when the process may open no more descriptors.
    @Suite struct Descriptors {
        @Test func `without descriptors accepting pauses, is told of once, and goes on`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.faultyOrigin()
            try scenario.configure(origin: origin.address, rules: "[]", lanes: 1)
            let few = ["/bin/sh", "-c", #"ulimit -n 64 && exec "$0" "$@""#]
            let gateway = try scenario.serve(within: few)
            let admin = try gateway.adminClient()
            let before = try Metrics(admin)
            let descriptors = try gateway.descriptors(admin)
            // These were taken, and one has used the connection to the origin that is pooled now.
            let (early, other) = (gateway.client(), gateway.client())
            #expect(try early.send("GET", "/first").status == 200)
            #expect(try other.send("GET", "/first").status == 200)

            var crowd = try (0..<80).map { _ in try Socket(port: gateway.port) }
            try gateway.waitUntil("several pauses", admin) { $0["accept_pauses_total"] >= 5 }
            #expect(gateway.complaints(of: "accepting pauses, accept4: Too many open files") == 1)
            #expect(gateway.complaints(of: "64 descriptors may be open") == 1)
            // Who is connected is served as long as that takes no descriptor more.
            #expect(try early.send("GET", "/early").status == 200)
            let waiting = MessageReader(try Socket(port: gateway.port))
            try waiting.socket.send("GET /late HTTP/1.1\r\nHost: a\r\n\r\n")
            try expectOutOfDescriptors(gateway, early, other, origin)
            #expect(try Metrics(admin)["origin_connect_failures_total"] == 1)

            for socket in crowd { socket.close() }
            crowd = []
            #expect(try waiting.head()?.startLine == "HTTP/1.1 200 OK")
            _ = try gateway.child.wait(for: "end of the shortage") { _, complained in
                complained.contains("accepting goes on") ? true : nil
            }
            #expect(try gateway.client().send("GET", "/after").status == 200)
            #expect(gateway.complaints(of: "accepting pauses") == 1)
            #expect(gateway.complaints(of: "accepting goes on") == 1)
            for client in [early, other] { client.close() }
            waiting.socket.close()
            try gateway.waitUntil("the end of all connections", admin) { _ in
                try gateway.descriptors(admin) == descriptors
            }
            #expect(try Metrics(admin)["client_connections_refused_total"] == 0)
            #expect(before["accept_pauses_total"] == 0)
            #expect(try gateway.stop() == 0)
        }

        /// While one request has the pooled connection, another one can't have a new one.
        private func expectOutOfDescriptors(
            _ gateway: GatewayProcess,
            _ holder: HTTPClient,
            _ other: HTTPClient,
            _ origin: FaultyOrigin
        ) throws {
            let held = Thread.Answer { try holder.send("GET", "/held").status }
            try origin.awaitHeld(1)
            let answer = try other.send("GET", "/starved")
            #expect(answer.status == 503)
            #expect(answer.reason == "out-of-descriptors")
            let line = try gateway.line(about: "/starved")
            #expect(line["problem"] as? String == "out-of-descriptors")
            origin.release()
            #expect(try held.value() == 200)
        }
    }
}

extension Thread {
    /// What a closure answers that runs on a thread of its own.
    ///
    /// `@unchecked Sendable`: the result is touched under `condition`.
    final class Answer<Value>: @unchecked Sendable {
        private let condition = NSCondition()
        private var result: Result<Value, any Error>?

        init(_ body: @escaping () throws -> Value) {
            // Whoever asks does not touch what the closure uses until it has ended.
            nonisolated(unsafe) let body = body
            Thread.detachNewThread { [self] in
                let result = Result { try body() }
                condition.withLock {
                    self.result = result
                    condition.broadcast()
                }
            }
        }

        func value(within seconds: Double = ChildProcess.patience) throws -> Value {
            let deadline = Date(timeIntervalSinceNow: seconds)
            return try condition.withLock {
                while result == nil, condition.wait(until: deadline) {}
                guard let result else { throw ChildProcess.Failure(description: "no answer") }
                return try result.get()
            }
        }
    }
}
