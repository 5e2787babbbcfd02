import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// The commands about origins, beside a running gateway and without one.
    @Suite struct OriginCommands {
        @Test func `servers are listed, drained and undrained by commands`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let server = "127.0.0.1:\(origin.port)"
            try scenario.write(
                "portcullis.yaml",
                """
                listen:
                \(try ClientSide.current.listeners())
                admin: { address: "unix:\(scenario.path("admin.sock"))" }
                event_loops: 2
                origins: { shop: { servers: ["\(server)"] } }
                default: { origin: shop, mode: off }
                """
            )
            let config = scenario.path("portcullis.yaml")
            func run(_ words: String...) throws -> Scenario.Result {
                try scenario.portcullis(
                    ["origins", words[0], "--config", config] + words.dropFirst()
                )
            }
            let without = try run("list")
            expectEqual(without.status, 1)
            #expect(without.complained.contains("no gateway answers at unix:"))
            let gateway = try scenario.serve()
            let client = gateway.client()
            try expectEqual(client.send("GET", "/").status, 200)
            let listed = try run("list")
            expectEqual(listed.status, 0)
            #expect(listed.printed.hasPrefix("shop\t\(server)\tup\tweight 1\t0 active\t"))
            #expect(listed.printed.hasSuffix("\tlast failure: never\tlast check: never\n"))
            let asked = try run("drain", server)
            expectEqual(asked.status, 1)
            #expect(asked.complained.contains("no other server of shop is up"), "\(asked)")
            #expect(asked.complained.contains("portcullis: nothing has changed"), "\(asked)")
            try expectEqual(client.send("GET", "/").status, 200)
            let drained = try run("drain", server, "--yes")
            expectEqual(drained.status, 0)
            expectEqual(drained.printed, "\(server) gets no new requests\n")
            try expectEqual(client.send("GET", "/").reason, "origin-down")
            #expect(try run("list").printed.contains("\tdrained\t"))
            try expectEqual(run("undrain", server).status, 0)
            try expectEqual(client.send("GET", "/").status, 200)
            let unknown = try run("drain", "nobody:1")
            expectEqual(unknown.status, 1)
            #expect(unknown.complained.contains("no origin has this server"))
        }

        /// A name that nobody has (RFC 6761 §6.4).
        @Test func `a server is drained although its name has no address`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let server = "no-such-host.invalid:80"
            try scenario.write(
                "portcullis.yaml",
                """
                listen:
                \(try ClientSide.current.listeners())
                admin: { address: "unix:\(scenario.path("admin.sock"))" }
                origins: { shop: { servers: ["\(server)"] } }
                default: { origin: shop, mode: off }
                """
            )
            _ = try scenario.serve()
            for (change, text) in [("drain", "no new requests"), ("undrain", "requests again")] {
                let words = ["origins", change, "--config", scenario.path("portcullis.yaml")]
                let more = change == "drain" ? [server, "--yes"] : [server]
                let done = try scenario.portcullis(words + more)
                expectEqual(done.status, 0, "\(done)")
                expectEqual(done.printed, "\(server) gets \(text)\n")
            }
        }
    }
}
