import Expectations
import Foundation
import LoopbackKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The program, when it is ended during a run.
@Suite struct EndingTests {
    /// The processes that a process has started and that run.
    private static func children(of process: Int32) throws -> [String] {
        let threads = try FileManager.default
            .contentsOfDirectory(atPath: "/proc/\(process)/task")
        return threads.flatMap { thread in
            let file = URL(filePath: "/proc/\(process)/task/\(thread)/children")
            let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
            return text.split(separator: " ").map(String.init)
        }
    }

    @Test(.enabled(if: Place.isPossible), arguments: [SIGTERM, SIGINT])
    func `a signal ends the program, its gateways and their folders`(signal: Int32) async throws {
        let server = try ChildProcess(
            Place.gateway + "-prove",
            ["--listen", "127.0.0.1:0", "--cases", Place.cases, "--short"]
        )
        defer { server.end() }
        let url = try server.wait(for: "address") { printed, _ in
            printed.firstMatch(of: /http:\S+\/next/).flatMap { URL(string: String($0.0)) }
        }
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = Data(#"{"client": "none", "platform": "ios"}"#.utf8)
        // The first step comes when the first gateway is there.
        _ = try await URLSession.shared.data(for: request)
        let gateways = try Self.children(of: server.identifier).map { "/proc/\($0)" }
        #expect(!gateways.isEmpty)
        let folders = try gateways.map {
            try FileManager.default.destinationOfSymbolicLink(atPath: $0 + "/cwd")
        }
        server.signal(signal)
        try expectEqual(server.waitForEnd(), 128 + signal)
        for path in gateways + folders {
            #expect(!FileManager.default.fileExists(atPath: path), "\(path) is left")
        }
    }
}
