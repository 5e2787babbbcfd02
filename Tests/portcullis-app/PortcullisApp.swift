import ClientKit
import Foundation
import PortcullisClient
import PortcullisClientTesting
import ProvingDriver

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An app in a process of its own: it sends requests at once, says what it cost, and may end in the
/// middle of an enrolment as if it were killed. Or it downloads, and says what memory that took.
@main enum PortcullisApp {
    /// How it is to be called.
    private static let usage =
        "usage: portcullis-app GATEWAY APP-ID AUTHORITY.pem DEVICE-FOLDER STORE-FILE URL COUNT "
        + "[PLACE] [--unplanned] [--tries=COUNT] [--download]\n"
        + "       portcullis-app prove http://127.0.0.1:8099"

    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "prove", let server = arguments.last.flatMap(URL.init(string:)) {
            return try await prove(server)
        }
        let words = arguments.filter { !$0.hasPrefix("--") }
        guard words.count >= 7, let gateway = URL(string: words[0]),
            let url = URL(string: words[5]), let count = Int(words[6])
        else {
            print(usage)
            exit(2)
        }
        let place = words.count > 7 ? DeathPlace(rawValue: words[7]) : nil
        let authority = try TestAuthority(pem: String(contentsOfFile: words[2], encoding: .utf8))
        let service = ScriptedAttestationService(
            try SoftwareAttestationService(
                appID: words[1],
                authority: authority,
                folder: URL(filePath: words[3])
            )
        )
        let transport = ScriptedTransport(URLSessionTransport())
        place?.arm(service, transport)
        var configuration = PortcullisConfiguration(gateway: gateway)
        configuration.routeMemory = .none
        // Without a plan, it learns from answers what the route signs.
        if !arguments.contains("--unplanned") {
            configuration.defaultRequirement = SigningRequirement()
        }
        for option in arguments where option.hasPrefix("--tries=") {
            configuration.limits.maximumAttempts = Int(option.dropFirst("--tries=".count)) ?? 3
        }
        let session = PortcullisSession(
            configuration,
            service: service,
            store: FileEnrolmentStore(file: URL(filePath: words[4])),
            transport: transport
        )
        if arguments.contains("--download") {
            try await download(url, session)
            await session.close()
            return
        }
        let proven = await withTaskGroup(of: Bool.self) { group -> Int in
            for _ in 0..<count {
                group.addTask {
                    guard let answer = try? await session.data(for: URLRequest(url: url)).1 else {
                        return false
                    }
                    return answer.statusCode == 200 && answer.proof != .none(.notAsked)
                }
            }
            var proven = 0
            for await isProven in group where isProven { proven += 1 }
            return proven
        }
        await session.close()
        report(service, "proven=\(proven)")
    }

    /// Has the client proven. Ends with status 1 where a case failed, with 2 where no run ended.
    private static func prove(_ server: URL) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-proven-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var status: Int32 = 2
        do {
            let failed = try await ProvingDriver(server, folder: folder).run()
            status = failed == 0 ? 0 : 1
        } catch {
            print("the proving ground at \(server) does not go on: \(error)")
        }
        try FileManager.default.removeItem(at: folder)
        exit(status)
    }

    /// Downloads a file, and prints its bytes, and by how many KiB its peak of resident memory
    /// grew meanwhile.
    private static func download(_ url: URL, _ session: PortcullisSession) async throws {
        // What a first request needs is there then.
        _ = try await session.data(for: URLRequest(url: url.deletingLastPathComponent()))
        let before = try mostResidentKiB()
        let (file, answer) = try await session.download(for: URLRequest(url: url))
        defer { try? FileManager.default.removeItem(at: file) }
        let grown = try mostResidentKiB() - before
        let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? NSNumber
        print("status=\(answer.statusCode) bytes=\(size?.intValue ?? 0) kib=\(grown)")
        fflush(nil)
    }

    /// The most KiB that were resident so far.
    private static func mostResidentKiB() throws -> Int {
        let text = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") } ?? ""
        return Int(line.filter(\.isNumber)) ?? 0
    }

    /// Prints a line for the test.
    static func report(_ service: ScriptedAttestationService, _ end: String) {
        let counts = service.counts
        print("keys=\(counts.keysMade) attestations=\(counts.attestationsRequested) \(end)")
        fflush(nil)
    }
}
