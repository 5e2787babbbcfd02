import AppAttest
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// What the process gives up before it serves, looked at from outside.
    @Suite struct Processes {
        private static let rules = StockRule.list(.bare)

        /// Only root can become somebody else. Continuous integration runs as root.
        private static let isRoot: Bool = {
            if geteuid() == 0 { return true }
            print("not root: giving up root is not tried")
            return false
        }()

        private static let nobody = getpwnam("nobody").map {
            ($0.pointee.pw_uid, $0.pointee.pw_gid)
        }

        /// The status of each thread, as the kernel has it: names to values.
        private func threads(of process: Int32) throws -> [[String: String]] {
            let folder = "/proc/\(process)/task"
            return try FileManager.default.contentsOfDirectory(atPath: folder).map { thread in
                let text = try String(contentsOfFile: "\(folder)/\(thread)/status", encoding: .utf8)
                let pairs = text.split(separator: "\n").compactMap { line -> (String, String)? in
                    let parts = line.split(separator: ":", maxSplits: 1)
                    guard parts.count == 2 else { return nil }
                    let value = parts[1].split(whereSeparator: \.isWhitespace)
                    return (String(parts[0]), value.joined(separator: " "))
                }
                return Dictionary(pairs) { first, _ in first }
            }
        }

        /// The user whose process this is to the kernel: root for one that may not be looked into
        /// (proc(5), "dumpable").
        private func owner(of process: Int32) throws -> uid_t {
            var status = stat()
            guard stat("/proc/\(process)/environ", &status) == 0 else {
                throw ChildProcess.Failure(description: "no process \(process)")
            }
            return status.st_uid
        }

        @Test(arguments: [SIGTERM, SIGINT, SIGQUIT])
        func `a signal that ends the gateway lets it finish first`(number: Int32) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: "[]")
            let gateway = try scenario.serve()
            try expectEqual(gateway.client().send("GET", "/").status, 200)
            gateway.child.signal(number)
            try expectEqual(gateway.child.waitForEnd(), 0)
            try expectEqual(gateway.complaints(of: "draining"), 1)
        }

        @Test func `a killed gateway starts again at once on its port, with clients connected`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: "[]")
            let gateway = try scenario.serve()
            let clients = (0..<8).map { _ in gateway.client() }
            for client in clients { try expectEqual(client.send("GET", "/").status, 200) }
            let text = try String(contentsOfFile: scenario.path("portcullis.yaml"), encoding: .utf8)
            try scenario.write(
                "portcullis.yaml",
                text.replacing(
                    "address: 127.0.0.1:0",
                    with: "address: 127.0.0.1:\(gateway.port)",
                    maxReplacements: 1
                )
            )
            try gateway.crash()
            let next = try scenario.serve()
            expectEqual(next.port, gateway.port)
            try expectEqual(next.client().send("GET", "/").status, 200)
        }

        @Test(arguments: ["off", "on"])
        func `the memory goes into no core file unless the configuration allows it`(
            setting: String
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            // A process of root is root's either way, so it has to be another's to be seen.
            let user = geteuid() == 0 ? "user: nobody, " : ""
            let serving = geteuid() == 0 ? try #require(Self.nobody).0 : geteuid()
            try scenario.configure(
                origin,
                rules: Self.rules,
                more: "process: { \(user)core_dumps: \(setting) }"
            )
            try giveAway(scenario)
            let process = try scenario.serve().child.identifier
            try expectEqual(owner(of: process), setting == "off" ? 0 : serving)
            guard setting == "off" else { return }
            let limits = try String(contentsOfFile: "/proc/\(process)/limits", encoding: .utf8)
            let core = try #require(limits.split(separator: "\n").first { $0.contains("core") })
            expectEqual(core.split(whereSeparator: \.isWhitespace).suffix(3), ["0", "0", "bytes"])
        }

        /// Makes the scenario's folder nobody's, as a package makes the store's folder the user's.
        private func giveAway(_ scenario: Scenario) throws {
            guard geteuid() == 0 else { return }
            let (uid, gid) = try #require(Self.nobody)
            guard chown(scenario.folder.path, uid, gid) == 0 else {
                throw ChildProcess.Failure(description: "chown: \(errno)")
            }
        }

        @Test(.enabled(if: isRoot), .inTheClear)
        func `a process that root has started serves as its user, with all threads, for good`()
            throws
        {
            let (uid, gid) = try #require(Self.nobody)
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules, more: "process: { user: nobody }")
            try giveAway(scenario)
            // Made by root, and the user's all the same.
            var keys = try scenario.imported(2)
            let gateway = try scenario.serve()
            let client = gateway.client()
            try expectEqual(client.send(raw: keys[0].get("/v1/bare")).status, 200)
            let threads = try threads(of: gateway.child.identifier)
            // A sanitizer has a thread of its own, which is there before the program begins.
            let isBare = ProcessInfo.processInfo.environment["TSAN_OPTIONS"] == nil
            #expect(threads.count >= 2)
            for thread in threads {
                expectEqual(
                    thread["Uid"],
                    Array(repeating: "\(uid)", count: 4).joined(separator: " ")
                )
                expectEqual(
                    thread["Gid"],
                    Array(repeating: "\(gid)", count: 4).joined(separator: " ")
                )
                expectEqual(thread["Groups"]?.split(separator: " ").contains("0"), false)
                expectEqual(thread["CapEff"], "0000000000000000")
                expectEqual(thread["CapPrm"], "0000000000000000")
                #expect(thread["NoNewPrivs"] == "1" || !isBare)
            }
            #expect(threads.contains { $0["NoNewPrivs"] == "1" })

            // What an operator does as root beside it goes on working.
            let config = scenario.path("portcullis.yaml")
            let id = keys[0].keyID.base64
            try expectEqual(scenario.portcullis("keys", "revoke", "--config", config, id).status, 0)
            try expectEqual(client.send(raw: keys[0].get("/v1/bare")).reason, "key-revoked")
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            try expectEqual(client.send(raw: keys[1].get("/v1/bare")).status, 200)
            try expectEqual(gateway.stop(), 0)
            let files = try FileManager.default.contentsOfDirectory(atPath: scenario.folder.path)
            let store = files.filter { $0.hasPrefix("portcullis.db") }
            #expect(store.contains("portcullis.db.generation"))
            for name in store {
                var status = stat()
                expectEqual(stat(scenario.path(name), &status), 0)
                expectEqual(status.st_uid, uid, "\(name)")
                expectEqual(status.st_mode & 0o777, 0o600, "\(name)")
            }
        }

        @Test(.enabled(if: isRoot))
        func `a reload that the user may not read is foretold at the start, and changes nothing`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules, more: "process: { user: nobody }")
            try giveAway(scenario)
            let config = scenario.path("portcullis.yaml")
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: config)
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            #expect(gateway.child.complained.contains("as nobody a reload will be refused: "))
            #expect(gateway.child.complained.contains("a file that may not be read"))
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "refused reload") { _, complained in
                complained.contains("reload refused, generation 1 stays in use") ? true : nil
            }
            try expectEqual(gateway.client().send(raw: key.get("/v1/bare")).status, 200)
        }

        @Test func `a reload that a new process could take names the upgrade, others a restart`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            let gateway = try scenario.serve()
            let text = try String(contentsOfFile: scenario.path("portcullis.yaml"), encoding: .utf8)
            let config = "`portcullis upgrade --config "
            for (number, (old, new, isTaken)) in [
                ("event_loops: 2", "event_loops: 3", true),
                ("event_loops: 2", "event_loops: 1", false),
                ("admin: { address: 127.0.0.1:0 }", "", true),
                ("portcullis.db", "other.db", false),
            ].enumerated() {
                try scenario.write("portcullis.yaml", text.replacing(old, with: new))
                gateway.child.signal(SIGHUP)
                let said = try gateway.child.wait(for: "refusal \(number)") { _, complained in
                    let refusals = complained.components(separatedBy: "reload refused")
                    return refusals.count > number + 1 ? refusals[number + 1] : nil
                }
                expectEqual(said.contains(config), isTaken, "\(new): \(said)")
                #expect(said.contains("estart the gateway"))
            }
        }

        @Test func `a start beside the own drain says which process drains, and what to do`() throws
        {
            let stand = try UpgradeStand()
            defer { stand.end() }
            let kept = try stand.connection()
            stand.gateway.child.signal(SIGTERM)
            try stand.awaitLine("draining")
            let file = stand.scenario.path("portcullis.yaml")
            let process = "(process \(stand.gateway.child.identifier))"
            let text = try String(contentsOfFile: file, encoding: .utf8)
            // The operators' socket is in the way, and without that the store.
            for (admin, what) in [("admin", "can't listen on unix:"), ("next", "the store ")] {
                let path = stand.scenario.path("admin")
                let next = stand.scenario.path(admin)
                try stand.scenario.write(
                    "portcullis.yaml",
                    text.replacing("unix:\(path)\"", with: "unix:\(next)\"")
                )
                let start = try stand.scenario.portcullis("serve", file)
                expectEqual(start.status, 1)
                #expect(start.complained.contains(what), "\(start)")
                #expect(start.complained.contains(process), "\(start)")
                #expect(start.complained.contains("a gateway of this configuration"))
                #expect(start.complained.contains("wait until it has ended"))
            }
            kept.close()
        }

        @Test func `a start beside the own lame duck says which process has the port`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: "[]", more: "timeouts: { lame_duck: 1h }")
            let gateway = try scenario.serve()
            let file = scenario.path("portcullis.yaml")
            let address = "127.0.0.1:\(gateway.port)"
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try scenario.write(
                "portcullis.yaml",
                text.replacing(
                    "address: 127.0.0.1:0",
                    with: "address: \(address)",
                    maxReplacements: 1
                )
            )
            // It keeps its listeners for that hour.
            gateway.child.signal(SIGTERM)
            try expectEqual(gateway.complaints(of: "lame duck: "), 1)
            let start = try scenario.portcullis("serve", file)
            expectEqual(start.status, 1)
            let taken = "can't listen on \(address): address in use by "
            #expect(start.complained.contains(taken), "\(start)")
            let holder = "(process \(gateway.child.identifier)), a gateway of this configuration"
            #expect(start.complained.contains(holder), "\(start)")
            #expect(start.complained.contains("wait until it has ended"))
            try expectEqual(gateway.client().send("GET", "/").status, 200)
        }

        /// A signal was lost that came while Dispatch was still preparing to watch for it.
        @Test func `a gateway told to end as soon as it says that it serves ends`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            for _ in 0..<8 { try expectEqual(scenario.serve().stop(), 0) }
        }

        /// The resolver's server is a socket of the test that reads nothing. Only root may have a
        /// resolv.conf of its own.
        @Test(.enabled(if: isRoot && Scenario.tool("unshare") != nil))
        func `a resolver that does not answer holds neither operators nor a signal`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let resolver = try Self.silentResolver()
            defer { close(resolver.descriptor) }
            // The C library asks again five times at most, and waits 30 s for each answer: longer
            // than this test waits for the gateway's end.
            try scenario.write(
                "resolv.conf",
                "nameserver \(resolver.address)\noptions timeout:30 attempts:5\n"
            )
            try scenario.configure(origin, rules: Self.rules)
            let settings = scenario.path("resolv.conf")
            let mounted = "mount --bind '\(settings)' /etc/resolv.conf && exec \"$@\""
            let gateway = try scenario.serve(
                within: [
                    try #require(Scenario.tool("unshare")), "-m", "/bin/sh", "-c", mounted, "sh",
                ]
            )
            let admin = try gateway.adminClient()
            try scenario.configure(origin: "shop.test:80", rules: Self.rules)
            gateway.child.signal(SIGHUP)
            // The name is asked for.
            var byte: UInt8 = 0
            expectEqual(recv(resolver.descriptor, &byte, 1, 0), 1)
            try expectEqual(admin.send("GET", "/readyz").status, 200)
            try expectEqual(gateway.client().send("GET", "/plain").status, 200)
            try expectEqual(gateway.stop(), 0)
        }

        @Test(.enabled(if: isRoot && Scenario.tool("unshare") != nil))
        func `an upgrade looks names up before clients wait, however slow the resolver`() throws {
            let resolver = try Self.silentResolver()
            defer { close(resolver.descriptor) }
            let settings = NSTemporaryDirectory() + "resolv-\(UUID().uuidString)"
            defer { unlink(settings) }
            try "nameserver \(resolver.address)\noptions timeout:5 attempts:1\n".write(
                toFile: settings,
                atomically: true,
                encoding: .utf8
            )
            let mounted = "mount --bind '\(settings)' /etc/resolv.conf && exec \"$@\""
            // The first start looks nothing up, and waits for no resolver.
            let stand = try UpgradeStand(
                origins: "  silent: { servers: [\"127.0.0.1:9\"] }",
                within: [
                    try #require(Scenario.tool("unshare")), "-m", "/bin/sh", "-c", mounted, "sh",
                ]
            )
            defer { stand.end() }
            let file = stand.scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let named = text.replacing("\"127.0.0.1:9\"", with: "\"silent.test:80\"")
            try #require(named != text)
            try stand.scenario.write("portcullis.yaml", named)
            try stand.upgrade()
            #expect(try #require(stand.pauses.last) < 4_500)
        }

        /// A socket of some loopback address at the port for names.
        private static func silentResolver() throws -> (descriptor: Int32, address: String) {
            let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var time = timeval(tv_sec: Int(ChildProcess.patience), tv_usec: 0)
            let size = socklen_t(MemoryLayout<timeval>.size)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, size)
            for _ in 0..<100 {
                let host = UInt32.random(in: 1..<0xFF_FFFE)
                var address = LoopbackKit.address(port: 53)
                address.sin_addr.s_addr = (0x7F00_0000 | host).bigEndian
                let status = withUnsafePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                    }
                }
                guard status == 0 else { continue }
                let parts = [host >> 16 & 255, host >> 8 & 255, host & 255]
                return (descriptor, "127." + parts.map(String.init).joined(separator: "."))
            }
            throw LoopbackKit.Failure("no loopback address for a resolver")
        }

        @Test func `a user that is not there, or is root, starts nothing`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let config = scenario.path("portcullis.yaml")
            for (process, complaint) in [
                ("{ user: nobody-of-that-name }", "there is no user nobody-of-that-name"),
                ("{ user: nobody, group: no-such-group }", "there is no group no-such-group"),
                ("{ user: root }", "root is root itself"),
            ] {
                try scenario.configure(origin, rules: Self.rules, more: "process: \(process)")
                let served = try scenario.portcullis("serve", config)
                expectEqual(served.status, 1)
                #expect(served.complained.contains(complaint), "\(served.complained)")
                #expect(!served.complained.contains("listening"))
            }
        }
    }
}
