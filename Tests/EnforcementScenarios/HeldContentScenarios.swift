import Cryptography
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// How much content is held before it was judged, and what happens when that is too much.
    @Suite(.overEachClient) struct HeldContent {
        private static let rules = """
            - id: held
              match: { path: /held }
              mode: enforce
              sign: [method, target, body]
              body: { digest: held, limit: 1MiB, memory: 64KiB }
            - id: watched
              match: { path: /watched }
              mode: observe
              sign: [method, target, body]
              body: { digest: held, limit: 1MiB, memory: 64KiB }
            """

        private struct Bench {
            let gateway: GatewayProcess
            let origin: RecordingOrigin
            let admin: HTTPClient
            var key: SoftwareKey
        }

        private func start(
            _ scenario: Scenario,
            more: String = "",
            loops: Int = 2,
            within outer: [String] = []
        ) throws -> Bench {
            let origin = try scenario.origin()
            let address = "127.0.0.1:\(origin.port)"
            try scenario.configure(origin: address, rules: Self.rules, more: more, loops: loops)
            let key = try scenario.imported()[0]
            let gateway = try scenario.serve(within: outer)
            return Bench(
                gateway: gateway,
                origin: origin,
                admin: try gateway.adminClient(),
                key: key
            )
        }

        /// Made once: in a debug build a byte takes longer to make than to send.
        private static let bytes = (0..<1 << 20).map {
            UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8)
        }

        private static func content(_ count: Int) -> [UInt8] { Array(bytes[..<count]) }

        /// A client that has sent the beginning of content under an assertion that is worth
        /// nothing, and without its digest, so that only the whole content can show it.
        private func worthless(
            _ bench: inout Bench,
            count: Int,
            from address: String? = nil
        ) throws -> Wire {
            let request = SoftwareKey.Request(method: "POST", target: "/held", content: [1])
            let signing = SigningForm.lines([.method, .target, .body], headers: [])
            var fields = bench.key.proof(of: request, signing: signing).fields
            fields.removeAll { $0.name.lowercased() == "content-digest" }
            fields.append(("Content-Length", String(1 << 20)))
            if let address { fields.append(("X-Forwarded-For", address)) }
            let socket = try Wire(port: bench.gateway.port)
            try socket.send(HTTPClient.head("POST", "/held", fields) + "\r\n")
            // Who is refused may be closed to before all of it is sent.
            try? socket.send(Self.content(count))
            return socket
        }

        /// A request as an app sends it.
        private func good(
            _ bench: inout Bench,
            target: String = "/held",
            count: Int = 900_000,
            from address: String? = nil
        ) throws -> Answer {
            let request = SoftwareKey.Request(
                method: "POST",
                target: target,
                content: Self.content(count)
            )
            let signing = SigningForm.lines([.method, .target, .body], headers: [])
            let proof = bench.key.proof(of: request, signing: signing)
            let more = address.map { [(name: "X-Forwarded-For", value: $0)] } ?? []
            return try bench.gateway.client().send(request, proof, more: more)
        }

        private func awaitNothingHeld(_ bench: Bench) throws {
            try bench.gateway.waitUntil("nothing held", bench.admin) {
                $0["held_memory_bytes"] == 0 && $0["held_disk_bytes"] == 0
            }
        }

        /// Wherever the content goes: memory may bound it too.
        private static let small =
            "limits: { held_memory: 1MiB, held_disk: 1MiB, address_held: 8MiB }"

        /// Writes to files without a name wait while a file is there, and reads beyond their first
        /// byte while another one is: a disk that stands still.
        private static let stalledDisk = """
            #define _GNU_SOURCE
            #include <stdlib.h>
            #include <sys/stat.h>
            #include <sys/syscall.h>
            #include <unistd.h>
            ssize_t pwrite64(int file, const void *bytes, size_t count, off_t offset) {
                struct stat status;
                if (fstat(file, &status) == 0 && status.st_nlink == 0)
                    while (access(getenv("STALLED_WHILE"), F_OK) == 0) usleep(1000);
                return syscall(SYS_pwrite64, file, bytes, count, offset);
            }
            ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
                return pwrite64(file, bytes, count, offset);
            }
            ssize_t pread64(int file, void *bytes, size_t count, off_t offset) {
                struct stat status;
                if (offset > 0 && fstat(file, &status) == 0 && status.st_nlink == 0)
                    while (access(getenv("UNREAD_WHILE"), F_OK) == 0) usleep(1000);
                return syscall(SYS_pread64, file, bytes, count, offset);
            }
            ssize_t pread(int file, void *bytes, size_t count, off_t offset) {
                return pread64(file, bytes, count, offset);
            }

            """

        /// A gateway on one event loop whose disk stands still as the files `stalled` and `unread`
        /// say.
        private func startOnStalledDisk(_ scenario: Scenario) throws -> Bench {
            try scenario.write("disk.c", Self.stalledDisk)
            let library = scenario.path("disk.so")
            let compiler = try ChildProcess.run(
                "/usr/bin/env",
                ["clang", "-shared", "-fPIC", "-o", library, scenario.path("disk.c")]
            )
            try #require(compiler.status == 0, "\(compiler.complained)")
            return try start(
                scenario,
                loops: 1,
                within: [
                    "/usr/bin/env", "LD_PRELOAD=\(library)",
                    "STALLED_WHILE=\(scenario.path("stalled"))",
                    "UNREAD_WHILE=\(scenario.path("unread"))",
                ]
            )
        }

        @Test(.overOneClient)
        func `a disk that stands still stops no client but those whose content is there`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let stalled = scenario.path("stalled")
            var bench = try startOnStalledDisk(scenario)
            try expectEqual(good(&bench).status, 200)

            try scenario.write("stalled", "")
            // Its content is larger than what the rule holds in memory.
            let upload = try worthless(&bench, count: 900_000)
            defer { upload.close() }
            try bench.gateway.waitUntil("refused", bench.admin) { $0["verdicts_total"] >= 2 }
            let line = try bench.gateway.line(about: "/held", after: 1)
            #expect(line["status"] as? Int == 503)
            #expect(line["reason"] as? String == "spill-failed")
            // From now on it costs not even the wait for one call.
            #expect(try !isAdmitted(&bench))
            let small = try good(&bench, count: 1_000)
            expectEqual(small.status, 200)

            try FileManager.default.removeItem(atPath: stalled)
            #expect(try eventually(within: 60) { try isAdmitted(&bench) })
        }

        /// An application may take a reset for the end of the content, and run with what it has.
        @Test(.overOneClient)
        func `content whose beginning the origin has waits for a disk that is late`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var bench = try startOnStalledDisk(scenario)
            try scenario.write("unread", "")
            let content = Self.content(900_000)
            let request = SoftwareKey.Request(method: "POST", target: "/held", content: content)
            let signing = SigningForm.lines([.method, .target, .body], headers: [])
            var fields = bench.key.proof(of: request, signing: signing).fields
            fields.append(("Content-Length", String(content.count)))
            let socket = try Wire(port: bench.gateway.port)
            defer { socket.close() }
            try socket.send(HTTPClient.head("POST", "/held", fields) + "\r\n")
            try socket.send(content)
            try bench.gateway.waitUntil("the verdict", bench.admin) { $0["verdicts_total"] == 1 }
            // Longer than the event loop waits for any call; others are served meanwhile.
            let end = ContinuousClock.now + .seconds(3)
            let isServed = try eventually(within: 60) {
                let small = try good(&bench, count: 1_000)
                expectEqual(small.status, 200)
                return ContinuousClock.now > end
            }
            #expect(isServed)
            try FileManager.default.removeItem(atPath: scenario.path("unread"))
            try expectEqual(socket.readFinalResponse(to: "POST").status, 200)
            let seen = bench.origin.seen.filter { $0.count > 1_000 }
            expectEqual(seen.map(\.digest), [SHA256.digest(of: content)])
            expectEqual(seen.map(\.isComplete), [true])
        }

        /// Whether content beyond what memory holds is admitted. A client that is refused may see a
        /// reset before it has sent all of it.
        private func isAdmitted(_ bench: inout Bench) throws -> Bool {
            do {
                return try good(&bench).status == 200
            } catch WireFault.reset {
                return false
            }
        }

        @Test func `sixty clients with a worthless assertion fill no disk`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var bench = try start(scenario, more: Self.small)
            var sockets: [Wire] = []
            for _ in 0..<60 { sockets.append(try worthless(&bench, count: 200_000)) }
            // Eleven find room, if none was refused for others that were refused in turn.
            try bench.gateway.waitUntil("49 refusals", bench.admin) { $0["verdicts_total"] >= 49 }
            let metrics = try Metrics(bench.admin)
            #expect((0...Double(1 << 20)).contains(metrics["held_disk_bytes"]))
            #expect((0...Double(1 << 20)).contains(metrics["held_memory_bytes"]))
            let line = try bench.gateway.line(about: "/held")
            #expect(line["status"] as? Int == 503)
            #expect(line["reason"] as? String == "held-full")
            for socket in sockets { socket.close() }
            try awaitNothingHeld(bench)
            try expectEqual(good(&bench).status, 200)
            try awaitNothingHeld(bench)
            expectEqual(bench.origin.seen.count, 1)
        }

        /// Addresses that count as one, and one that doesn't.
        struct Neighbours: Sendable, CustomTestStringConvertible {
            let one: [String]
            let other: String
            var testDescription: String { one[0] }

            static let all = [
                Neighbours(one: ["203.0.113.7"], other: "203.0.113.8"),
                Neighbours(
                    one: ["2001:db8:0:1::1", "2001:db8:0:1:ffff::2"],
                    other: "2001:db8:0:2::1"
                ),
            ]
        }

        @Test(arguments: Neighbours.all)
        func `one address can't take the room of the others`(neighbours: Neighbours) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var bench = try start(
                scenario,
                more: """
                    trusted_proxies: [127.0.0.0/8]
                    limits: { held_disk: 64MiB, address_held: 1MiB, key_held: 64MiB }
                    """
            )
            var sockets: [Wire] = []
            for number in 0..<8 {
                let address = neighbours.one[number % neighbours.one.count]
                sockets.append(try worthless(&bench, count: 300_000, from: address))
            }
            try bench.gateway.waitUntil("5 refusals", bench.admin) { $0["verdicts_total"] >= 5 }
            let line = try bench.gateway.line(about: "/held")
            #expect(line["status"] as? Int == 429)
            #expect(line["reason"] as? String == "address-held")
            try expectEqual(good(&bench, from: neighbours.other).status, 200)
            for socket in sockets { socket.close() }
            try awaitNothingHeld(bench)
            // All of it was given back, also of requests that were broken off.
            for address in neighbours.one {
                try expectEqual(good(&bench, from: address).status, 200)
            }
        }

        @Test func `one key can't take the room of the others, whatever its addresses`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var bench = try start(
                scenario,
                more: """
                    trusted_proxies: [127.0.0.0/8]
                    limits: { held_disk: 64MiB, key_held: 1MiB }
                    """
            )
            var sockets: [Wire] = []
            for number in 0..<8 {
                let address = "203.0.113.\(number)"
                sockets.append(try worthless(&bench, count: 300_000, from: address))
            }
            try bench.gateway.waitUntil("5 refusals", bench.admin) { $0["verdicts_total"] >= 5 }
            let line = try bench.gateway.line(about: "/held")
            #expect(line["status"] as? Int == 429)
            #expect(line["reason"] as? String == "key-held")
            for socket in sockets { socket.close() }
            try awaitNothingHeld(bench)
            try expectEqual(good(&bench, from: "203.0.113.1").status, 200)
        }

        @Test func `files in memory take no more than memory may`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let more = """
                spill_folder: /dev/shm
                limits: { held_memory: 2MiB, held_disk: 64MiB, address_held: 8MiB }
                """
            var bench = try start(scenario, more: more)
            var sockets: [Wire] = []
            for _ in 0..<16 { sockets.append(try worthless(&bench, count: 300_000)) }
            try bench.gateway.waitUntil("10 refusals", bench.admin) {
                $0["verdicts_total"] >= 10
            }
            let metrics = try Metrics(bench.admin)
            #expect((0...Double(2 << 20)).contains(metrics["held_memory_bytes"]))
            expectEqual(metrics["held_disk_bytes"], 0)
            #expect(metrics["bodies_spilled_total"] > 0)
            let line = try bench.gateway.line(about: "/held")
            #expect(line["reason"] as? String == "held-full")
            for socket in sockets { socket.close() }
            try awaitNothingHeld(bench)
            try expectEqual(good(&bench).status, 200)
        }

        @Test func `with a digest in the head a worthless assertion is refused unheld`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var bench = try start(scenario, more: "")
            let request = SoftwareKey.Request(method: "POST", target: "/held", content: [1, 2])
            let signing = SigningForm.lines([.method, .target, .body], headers: [])
            let proof = bench.key.proof(of: request, signing: signing, damage: .signature)
            let socket = try Wire(port: bench.gateway.port)
            let fields = proof.fields + [("Content-Length", "2")]
            try socket.send(HTTPClient.head("POST", "/held", fields) + "\r\n")
            let head = try socket.readHead()
            #expect(head.startLine.hasPrefix("HTTP/1.1 403"))
            try expectEqual(Metrics(bench.admin)["bodies_held_total"], 0)
        }

        /// Files may grow to 512 KiB; behind that, writes fail as on a full disk.
        private static let bounded = ["/bin/sh", "-c", #"ulimit -f 1024 && exec "$0" "$@""#]

        @Test func `a full disk is an answer, and the gateway goes on`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var bench = try start(scenario, more: "", within: Self.bounded)
            for _ in 0..<2 {
                let answer = try good(&bench)
                expectEqual(answer.status, 503)
                expectEqual(answer.reason, "spill-failed")
            }
            try awaitNothingHeld(bench)
            expectEqual(bench.origin.connectionCount, 0)
            try expectEqual(good(&bench, count: 400_000).status, 200)
        }

        @Test(arguments: [false, true])
        func `who is only observed is forwarded whole when there is no room to hold`(
            isDiskFull: Bool
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var bench = try start(
                scenario,
                more: isDiskFull
                    ? "" : "limits: { held_memory: 8MiB, held_disk: 8MiB, address_held: 1MiB }",
                within: isDiskFull ? Self.bounded : []
            )
            var sockets: [Wire] = []
            if !isDiskFull {
                // Takes up the address's room.
                sockets.append(try worthless(&bench, count: 800_000))
                try bench.gateway.waitUntil("content held", bench.admin) {
                    $0["held_disk_bytes"] + $0["held_memory_bytes"] >= 800_000
                }
            }
            try expectEqual(good(&bench, target: "/watched").status, 200)
            let seen = try bench.origin.seen(1)[0]
            #expect(seen.isComplete && seen.count == 900_000)
            expectEqual(seen.digest, SHA256.digest(of: Self.content(900_000)))
            expectEqual(seen.head.value("App-Attest-Verdict"), "refuse")
            let reason = isDiskFull ? "spill-failed" : "address-held"
            expectEqual(seen.head.value("App-Attest-Reason"), reason)
            for socket in sockets { socket.close() }
            try awaitNothingHeld(bench)
        }
    }
}
