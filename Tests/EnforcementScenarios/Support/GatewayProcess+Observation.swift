import Foundation
import LoopbackKit
import TestSupport
import Testing

// What operators see of a gateway: log, metrics, the process.
extension GatewayProcess {
    /// A client of the admin listener.
    func adminClient() throws -> HTTPClient {
        HTTPClient(port: try adminPort(), asking: "localhost")
    }

    /// The port of the admin listener: of the last address that was told.
    func adminPort() throws -> UInt16 {
        try child.wait(for: "admin listener") { _, complained in
            guard let start = complained.range(of: "admin on 127.0.0.1:") else { return nil }
            return UInt16(complained[start.upperBound...].prefix { $0.isNumber })
        }
    }

    /// The last line of the access log about a path, once it has more than `earlier` of them.
    func line(about path: String, after earlier: Int = 0) throws -> [String: Any] {
        let member = Array(#""path":"\#(path)""#.utf8)
        let line = try child.wait(for: "line about \(path)") { printed, _ in
            // The last one may be half a line.
            Wire.split(Array(printed.utf8), at: [UInt8(ascii: "\n")]).dropLast()
                .filter { Wire.index(of: member, in: $0) != nil }
                .dropFirst(earlier).last
        }
        let object = try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any]
        return try #require(object)
    }

    /// What is open, save the pooled connections.
    func descriptors(_ admin: HTTPClient) throws -> OpenDescriptors {
        let pooled = try Metrics(admin)["origin_connections_pooled"]
        var open = try OpenDescriptors(of: child.identifier)
        open.leaveOut(sockets: Int(pooled))
        return open
    }

    /// Waits until no client is connected and nothing is open but what was.
    func awaitRest(_ admin: HTTPClient, as before: OpenDescriptors) throws {
        var (clients, open) = (0, before)
        try waitUntil(
            "the end of all connections; \(clients) clients; before: \(before); now: \(open)",
            admin
        ) { metrics in
            clients = Int(metrics["client_connections_open"])
            open = try descriptors(admin)
            return clients == 0 && open == before
        }
    }

    /// KiB of memory that is resident.
    func residentKiB() throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(child.identifier)/status", encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
        return try #require(Int(line.filter(\.isNumber)))
    }

    /// Waits for a line on standard error that says this, since the log is written beside what it
    /// tells of.
    ///
    /// - Returns: how many lines say it.
    func complaints(of text: String) throws -> Int {
        try child.wait(for: "line that says \(text)") { _, complained in
            let lines = complained.split(separator: "\n", omittingEmptySubsequences: false)
            let count = lines.dropLast().count { $0.contains(text) }
            return count > 0 ? count : nil
        }
    }
}

extension ServedGateway {
    /// Asks until this holds of what the gateway says.
    func waitUntil(
        _ what: @autoclosure () -> String,
        _ admin: HTTPClient,
        _ isTrue: (Metrics) throws -> Bool
    ) throws {
        guard try eventually({ try isTrue(Metrics(admin)) }) else {
            throw ChildProcess.Failure(description: "never came: \(what())")
        }
    }
}
