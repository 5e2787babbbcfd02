import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// The chapter on deploying, as far as it goes without systemd: everything is read-only but the
    /// state, and the gateway is a user of its own.
    @Suite struct Deployments {
        /// Mounts are root's. Continuous integration runs as root.
        private static let isPossible: Bool = {
            guard geteuid() == 0 else {
                print("not root: the deployment with a read-only system is not tried")
                return false
            }
            return Scenario.tool("unshare") != nil && Scenario.tool("setpriv") != nil
        }()

        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              sign: [method, target]
            """

        /// What `ProtectSystem=strict`, `StateDirectory=` and `User=` of the unit do. The state is
        /// the only place that can be written, and gone with the process.
        private static let unit = """
            set -e
            mount --make-rprivate /
            mount -t tmpfs -o mode=755 tmpfs /var/lib
            mkdir -m 700 /var/lib/portcullis
            chown nobody /var/lib/portcullis
            mount --bind "$0" "$0"
            mount -o remount,bind,ro "$0"
            mount --bind / /
            mount -o remount,bind,ro /
            cd /var/lib/portcullis
            exec setpriv --reuid nobody --clear-groups --regid nogroup --no-new-privs \
                --bounding-set -all --inh-caps -all "$@"
            """

        private static func within(_ scenario: Scenario) throws -> [String] {
            // The user reads it; the files are root's.
            for file in try FileManager.default.contentsOfDirectory(atPath: scenario.folder.path) {
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o644],
                    ofItemAtPath: scenario.path(file)
                )
            }
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o755],
                ofItemAtPath: scenario.folder.path
            )
            let unshare = try #require(Scenario.tool("unshare"))
            let words = [unshare, "-m", "/bin/sh", "-c", unit, scenario.folder.path]
            // A search for leaks stops a process by ptrace, and never ends where that is forbidden.
            return Scenario.isSanitized ? words + ["env", "LSAN_OPTIONS=detect_leaks=0"] : words
        }

        private static func run(_ command: String, _ scenario: Scenario) throws -> Scenario.Result {
            let program = try #require(Scenario.program)
            let words = try within(scenario) + [program, command, scenario.path("portcullis.yaml")]
            return try scenario.run(words[0], Array(words.dropFirst()))
        }

        @Test(.enabled(if: isPossible), .inTheClear, arguments: ["check", "serve"])
        func `a store beside a configuration that is read-only is refused before the start`(
            command: String
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            let result = try Self.run(command, scenario)
            let said = result.printed + result.complained
            expectEqual(result.status, 1)
            #expect(said.contains("portcullis.yaml:10: store.sqlite: found "), "\(said)")
            #expect(said.contains("can't write ("), "\(said)")
            #expect(said.contains("; use an absolute path"), "\(said)")
            #expect(said.contains("such as /var/lib/portcullis/portcullis.db"))
        }

        @Test(.ofApple, .enabled(if: isPossible), .inTheClear)
        func `the configuration for deployments starts with nothing but its state writable`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            // What is shipped, but for addresses, certificate and app.
            let shipped = try String(
                contentsOfFile: Self.repository + "/deploy/portcullis.yaml",
                encoding: .utf8
            )
            let store = try #require(shipped.split(separator: "\n").first { $0.contains("store:") })
            try scenario.configure(
                origin: "127.0.0.1:\(origin.port)",
                rules: Self.rules,
                store: "/var/lib/portcullis/portcullis.db"
            )
            expectEqual(store, "store: { sqlite: /var/lib/portcullis/portcullis.db }")
            try expectEqual(Self.run("check", scenario).status, 0)
            let gateway = try scenario.serve(within: try Self.within(scenario))
            let client = gateway.client()
            var key = Scenario.device.makeKey()
            try expectEqual(gateway.enrol(key, client).status, 201)
            let request = SoftwareKey.Request(method: "GET", target: "/v1/orders")
            let proof = key.proof(of: request, signing: .lines([.method, .target], headers: []))
            try expectEqual(client.send(request, proof).status, 200)
            try expectEqual(gateway.stop(), 0)
        }

        private static var repository: String {
            var url = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
            while url.path != "/" {
                url.deleteLastPathComponent()
                let manifest = url.appending(path: "Package.swift").path
                if FileManager.default.fileExists(atPath: manifest) { return url.path }
            }
            return "."
        }
    }
}
