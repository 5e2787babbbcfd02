import Foundation
import Testing

// What operators see of a gateway: log, metrics, the process.
extension GatewayProcess {
    /// A client of the admin listener, whose address is the last one that was told.
    func adminClient() throws -> HTTPClient {
        let port: UInt16 = try child.wait(for: "admin listener") { _, complained in
            guard let start = complained.range(of: "admin on 127.0.0.1:") else { return nil }
            return UInt16(complained[start.upperBound...].prefix { $0.isNumber })
        }
        return HTTPClient(port: port)
    }

    /// The line of the access log about a path, once it is there.
    func line(about path: String) throws -> [String: Any] {
        let text: Substring = try child.wait(for: "line about \(path)") { printed, _ in
            let lines = printed.split(separator: "\n", omittingEmptySubsequences: false)
            // The last one may be half a line.
            return lines.dropLast().last { $0.contains(#""path":"\#(path)""#) }
        }
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        return try #require(object)
    }

    /// Descriptors that are open, save those of pooled connections and of the one who asks.
    func descriptors(_ admin: HTTPClient) throws -> Int {
        let folder = "/proc/\(child.identifier)/fd"
        let pooled = try Metrics(admin)["origin_connections_pooled"]
        let open = try FileManager.default.contentsOfDirectory(atPath: folder).count
        return open - Int(pooled)
    }

    /// Asks until this holds of what the gateway says.
    func waitUntil(
        _ what: String,
        _ admin: HTTPClient,
        _ isTrue: (Metrics) throws -> Bool
    ) throws {
        let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
        while try !isTrue(Metrics(admin)) {
            guard Date() < deadline else {
                throw ChildProcess.Failure(description: "never came: \(what)")
            }
        }
    }

    /// KiB of memory that is resident.
    func residentKiB() throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(child.identifier)/status", encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
        return try #require(Int(line.filter(\.isNumber)))
    }

    /// How often something stands in what it complained.
    func complaints(of text: String) -> Int {
        child.complained.split(separator: "\n").count { $0.contains(text) }
    }
}
