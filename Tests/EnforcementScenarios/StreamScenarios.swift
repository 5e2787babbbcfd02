import Expectations
import Foundation
import Glibc
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// Standard input, output and error that are missing, full, or read by nobody.
    @Suite struct Streams {
        /// A pipe in the file system, which its maker holds open in both directions.
        private final class NamedPipe {
            let path: String
            private let descriptor: Int32
            private(set) var text = ""

            init(_ path: String) throws {
                self.path = path
                guard mkfifo(path, 0o600) == 0 else { throw LoopbackKit.Failure("mkfifo") }
                descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
                guard descriptor >= 0 else { throw LoopbackKit.Failure("open") }
            }

            deinit { Glibc.close(descriptor) }

            /// Reads until something is found in all that came.
            func wait<Value>(for what: String, _ find: (String) -> Value?) throws -> Value {
                var buffer = [UInt8](repeating: 0, count: 4_096)
                while true {
                    if let found = find(text) { return found }
                    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                    guard poll(&entry, 1, Int32(ChildProcess.patience * 1_000)) > 0 else {
                        throw ChildProcess.Failure(description: "no \(what)\n\(text)")
                    }
                    let count = read(descriptor, &buffer, buffer.count)
                    if count > 0 { text += String(decoding: buffer[..<count], as: UTF8.self) }
                }
            }

            func port(behind words: String) throws -> UInt16 {
                try wait(for: words) { text in
                    guard text.contains(" event loops, "),
                        let start = text.range(of: words + " 127.0.0.1:")
                    else { return nil }
                    return UInt16(text[start.upperBound...].prefix { $0.isNumber })
                }
            }

            /// Writes until it takes nothing more.
            func fill() {
                let block = [UInt8](repeating: UInt8(ascii: "x"), count: 4_096)
                while write(descriptor, block, block.count) > 0 {}
                while write(descriptor, block, 1) > 0 {}
            }
        }

        /// A shell that prepares the streams before it becomes the program.
        private func shell(_ preparation: String, _ arguments: String...) throws -> [String] {
            guard let program = Scenario.program else {
                throw ChildProcess.Failure(description: "no portcullis")
            }
            return ["-c", preparation + #"; exec "$@""#, "sh", program] + arguments
        }

        /// Makes standard output a pipe whose reader has gone: opened for both, then for writing
        /// alone.
        private func unread(_ scenario: Scenario) throws -> String {
            let path = scenario.path("unread")
            guard mkfifo(path, 0o600) == 0 else { throw LoopbackKit.Failure("mkfifo") }
            return "exec 3<>'\(path)'; exec >'\(path)' 3<&-"
        }

        @Test func `a full standard error holds neither operators nor a signal`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: "[]")
            let pipe = try NamedPipe(scenario.path("errors"))
            let child = try scenario.start(
                "/bin/sh",
                shell("exec 2>'\(pipe.path)'", "serve", scenario.path("portcullis.yaml"))
            )
            let port = try pipe.port(behind: "listening on")
            let admin = HTTPClient(port: try pipe.port(behind: "admin on"), asking: "localhost")
            pipe.fill()
            // It says something about each, and nobody reads that.
            for generation in 2...3 {
                child.signal(SIGHUP)
                try #require(
                    try eventually {
                        try Metrics(admin)["configuration_generation"] == Double(generation)
                    },
                    "generation \(generation)"
                )
            }
            try expectEqual(admin.send("GET", "/readyz").status, 200)
            try expectEqual(HTTPClient(port: port).send("GET", "/").status, 200)
            child.signal(SIGTERM)
            try expectEqual(child.waitForEnd(), 0)
        }

        @Test func `a full standard output holds neither requests nor the end`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: "[]")
            let pipe = try NamedPipe(scenario.path("output"))
            pipe.fill()
            let child = try scenario.start(
                "/bin/sh",
                shell("exec >'\(pipe.path)'", "serve", scenario.path("portcullis.yaml"))
            )
            let gateway = try GatewayProcess(child)
            let client = gateway.client()
            for _ in 0..<100 { try expectEqual(client.send("GET", "/").status, 200) }
            client.close()
            try expectEqual(gateway.stop(), 0)
        }

        @Test(arguments: ["<&- >&- 2>&-", "<&-", ">&-", "2>&-", "unread"])
        func `a gateway starts and serves with streams that are closed`(_ closed: String) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let (listener, store) = (scenario.path("l.sock"), scenario.path("a.db"))
            try scenario.write(
                "portcullis.yaml",
                """
                listen: [{ address: "unix:\(listener)" }]
                event_loops: 1
                origins: { shop: { servers: ["127.0.0.1:\(origin.port)"] } }
                store: { sqlite: "\(store)" }
                default: { origin: shop, mode: off }
                timeouts: { drain: 50ms }

                """
            )
            let preparation =
                closed == "unread" ? try unread(scenario) + " 2>&1" : "exec \(closed)"
            let child = try scenario.start(
                "/bin/sh",
                shell(preparation, "serve", scenario.path("portcullis.yaml"))
            )
            let status = try awaitAnswer(HTTPClient(path: listener), child)
            expectEqual(status, 200)
            let names = try ["0", "1", "2"].map { number in
                try FileManager.default.destinationOfSymbolicLink(
                    atPath: "/proc/\(child.identifier)/fd/\(number)"
                )
            }
            for (number, stream) in ["<&-", ">&-", "2>&-"].enumerated()
            where closed.contains(stream) && !(stream == ">&-" && closed == "2>&-") {
                expectEqual(names[number], "/dev/null", "\(closed): \(names)")
            }
            try awaitHandler(of: SIGTERM, child)
            child.signal(SIGTERM)
            try expectEqual(child.waitForEnd(), 0)
        }

        /// It answers a moment before it hears signals, and where it would say so is closed
        /// (proc(5), `SigCgt`: bit i is set where signal i + 1 is caught).
        private func awaitHandler(of signal: Int32, _ child: ChildProcess) throws {
            let file = "/proc/\(child.identifier)/status"
            let isCaught = try eventually {
                let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
                let mask = lines.first { $0.hasPrefix("SigCgt:") }?.split(separator: "\t").last
                let caught = mask.flatMap { UInt64($0, radix: 16) } ?? 0
                return caught >> UInt64(signal - 1) & 1 == 1
            }
            #expect(isCaught, "signal \(signal)")
        }

        /// The status of the first answer.
        private func awaitAnswer(_ client: HTTPClient, _ child: ChildProcess) throws -> Int {
            var status: Int?
            eventually {
                status = try? client.send("GET", "/").status
                return status != nil || kill(child.identifier, 0) != 0
            }
            return try #require(status, "it does not serve")
        }

        @Test func `a command whose reader stops is no crash`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: "[]")
            _ = try scenario.imported()
            let config = scenario.path("portcullis.yaml")
            let unread = try unread(scenario)
            let commands: [(arguments: [String], status: Int32)] = [
                (["check", config], 0), (["--help"], 0), (["keys", "list", "--config", config], 1),
                (["keys", "export", "--config", config], 1), (["plan", config], 1),
            ]
            for (arguments, status) in commands {
                let words = try shell(unread) + arguments
                let result = try scenario.run("/bin/sh", words)
                expectEqual(result.status, status, "\(arguments): \(result)")
                #expect(!result.complained.contains("portcullis: "), "\(arguments): \(result)")
            }
        }

        @Test func `an export that does not fit on the disk fails and says so`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: "[]")
            _ = try scenario.imported()
            let words = try shell(
                "exec >/dev/full",
                "keys",
                "export",
                "--config",
                scenario.path("portcullis.yaml")
            )
            let result = try scenario.run("/bin/sh", words)
            expectEqual(result.status, 1)
            #expect(result.complained.contains("standard output can't be written: No space left"))
        }
    }
}
