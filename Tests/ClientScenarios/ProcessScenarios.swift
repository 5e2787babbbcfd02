import Expectations
import Foundation
import LoopbackKit
import Testing

extension ClientScenarios {
    /// Apps that are processes: killed in the middle, and sharing a store with another.
    @Suite struct Processes {
        /// The most KiB by which an app's memory may grow while it downloads: a fifth of the file.
        private static let grownKiBMax = 40 << 10

        /// What an app printed.
        private struct Report: Equatable, CustomStringConvertible {
            var keys = 0
            var attestations = 0
            var proven: Int?

            init(keys: Int, attestations: Int, proven: Int?) {
                (self.keys, self.attestations, self.proven) = (keys, attestations, proven)
            }

            init(_ line: String) {
                for word in line.split(whereSeparator: { $0 == " " || $0.isNewline }) {
                    let parts = word.split(separator: "=")
                    guard parts.count == 2, let number = Int(parts[1]) else { continue }
                    switch parts[0] {
                    case "keys": keys = number
                    case "attestations": attestations = number
                    case "proven": proven = number
                    default: break
                    }
                }
            }

            var description: String {
                let proven = proven.map(String.init) ?? "none"
                return "\(keys) keys, \(attestations) attestations, \(proven) proven"
            }
        }

        /// Starts an app; `install` names its device and its record, where there are several.
        private func start(
            _ stand: ClientStand,
            _ count: Int,
            install: String = "",
            path: String = "/orders/1",
            dyingAt place: String? = nil,
            options: [String] = []
        ) throws -> ChildProcess {
            let program = try #require(ClientStand.appProgram)
            let arguments = [
                "http://127.0.0.1:\(stand.gateway.port)", ClientStand.appID,
                stand.folder.appending(path: "authority.pem").path,
                stand.folder.appending(path: "device\(install)").path,
                stand.folder.appending(path: "record\(install)").path,
                "http://127.0.0.1:\(stand.gateway.port)\(path)", String(count),
            ]
            return try ChildProcess(program, arguments + (place.map { [$0] } ?? []) + options)
        }

        private func report(_ app: ChildProcess) throws -> Report {
            _ = try app.waitForEnd()
            let report = Report(app.printed)
            if app.printed.isEmpty { Issue.record("\(app.complained)") }
            app.end()
            return report
        }

        /// Killed at each step, then started again. What Apple was asked for is asked again only
        /// where the kill came before the app could write down the answer.
        @Test func `an app that was killed goes on where it was`() throws {
            let stand = try ClientStand()
            defer { stand.end() }
            for (place, killed, after) in [
                ("key-made", (1, 0), (1, 1)), ("challenge-asked", (1, 0), (0, 1)),
                ("attestation-asked", (1, 1), (0, 1)), ("attestation-made", (1, 1), (1, 2)),
                ("registration-asked", (1, 1), (0, 0)), ("registration-made", (1, 1), (0, 0)),
                ("enrolled", (1, 1), (0, 0)),
            ] {
                let first = try report(start(stand, 1, install: place, dyingAt: place))
                let expected = Report(keys: killed.0, attestations: killed.1, proven: nil)
                expectEqual(first, expected, "\(place)")
                let second = try report(start(stand, 3, install: place))
                let rest = Report(keys: after.0, attestations: after.1, proven: 3)
                expectEqual(second, rest, "\(place)")
            }
        }

        @Test func `an app that was killed goes on before a gateway that was killed as well`()
            throws
        {
            let stand = try ClientStand()
            defer { stand.end() }
            for place in [
                "key-made", "challenge-asked", "attestation-asked", "attestation-made",
                "registration-asked", "registration-made", "enrolled",
            ] {
                let killed = try report(start(stand, 1, install: place, dyingAt: place))
                try stand.gateway.restart()
                let after = try report(start(stand, 3, install: place))
                let isLost = ["key-made", "attestation-made"].contains(place)
                expectEqual(after.proven, 3, "\(place)")
                expectEqual(killed.keys + after.keys, isLost ? 2 : 1, "\(place)")
            }
        }

        @Test(arguments: [(4, 25), (2, 100)])
        func `processes that share a store and a device share one key`(
            count: Int,
            requests: Int
        ) throws {
            let stand = try ClientStand()
            defer { stand.end() }
            let apps = try (0..<count).map { _ in try start(stand, requests) }
            let reports = try apps.map(report)
            expectEqual(reports.map(\.proven), Array(repeating: requests, count: count))
            expectEqual(reports.map(\.keys).reduce(0, +), 1)
            expectEqual(reports.map(\.attestations).reduce(0, +), 1)
            expectEqual(stand.verdicts, Array(repeating: "pass", count: count * requests))
        }

        /// What came faster than the disk takes it waited in memory.
        @Test func `a download of 200 MiB takes a few MiB of an app's memory`() throws {
            let bytes = 200 << 20
            let stand = try ClientStand { connection in
                while let request = try connection.nextRequest() {
                    guard request.target.hasSuffix("/film") else {
                        try connection.answer(200, body: "ok", to: request)
                        continue
                    }
                    try connection.wire.send("HTTP/1.1 200 OK\r\nContent-Length: \(bytes)\r\n\r\n")
                    let piece = [UInt8](repeating: 7, count: 1 << 20)
                    for _ in 0..<(bytes >> 20) { try connection.wire.send(piece) }
                }
            }
            defer { stand.end() }
            let app = try start(stand, 1, path: "/open/film", options: ["--download"])
            defer { app.end() }
            _ = try app.waitForEnd()
            var numbers: [Substring: Int] = [:]
            for word in app.printed.split(whereSeparator: { $0 == " " || $0.isNewline }) {
                let parts = word.split(separator: "=")
                if parts.count == 2 { numbers[parts[0]] = Int(parts[1]) }
            }
            expectEqual(numbers["status"], 200, "\(app.complained)")
            expectEqual(numbers["bytes"], bytes)
            let grown = try #require(numbers["kib"])
            print("a download of 200 MiB: the app's memory grew by \(grown) KiB")
            #expect(grown < Self.grownKiBMax)
        }

        /// Each process sends one request at a time. One that another process has overtaken is
        /// signed again, and no key is lost for it.
        @Test func `processes that share a key on a strict route sign again what was overtaken`()
            throws
        {
            let stand = try ClientStand(
                rules: """
                    - { id: money, match: { path: /money/** }, mode: enforce, counter: strict }
                    """
            )
            defer { stand.end() }
            let apps = try (0..<2).map { _ in
                try start(stand, 30, path: "/money/1", options: ["--unplanned", "--tries=50"])
            }
            let reports = try apps.map(report)
            expectEqual(reports.map(\.proven), [30, 30])
            expectEqual(reports.map(\.keys).reduce(0, +), 1)
            expectEqual(reports.map(\.attestations).reduce(0, +), 1)
            expectEqual(stand.verdicts, Array(repeating: "pass", count: 60))
        }
    }
}
