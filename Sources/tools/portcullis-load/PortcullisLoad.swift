import ArgumentParser
import ConfigurationReading
import Cryptography
import EventLoops
import Foundation
import Glibc
import LoadGenerator

// Load for a gateway, from devices made of software.
//
//   prepare   a fleet out of a seed: keys to import, a root for test_root
//   enrol     brings a fleet into a gateway through its endpoints
//   run       sends requests and judges every answer
//   sign      signs one request, and prints the fields for curl or another client

/// Exit status: 0 when all is as expected, 1 when a run's answers are not, 2 for wrong usage and
/// for what can't be done.
@main
struct PortcullisLoad: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "portcullis-load",
        abstract: "Load for a gateway, in which every request has an answer that is expected.",
        subcommands: [PrepareCommand.self, EnrolCommand.self, RunCommand.self, SignCommand.self]
    )

    static func main() async {
        OpenSSLCleanup.leaveToSystem()
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            // Printed text is written here at the latest.
            guard fflush(nil) == 0 else {
                let why = String(cString: strerror(errno))
                throw LoadError("standard output can't be written: \(why)")
            }
        } catch let code as ExitCode {
            Glibc.exit(code.rawValue)
        } catch let error as LoadError {
            DiagnosticOutput.write("portcullis-load: \(error)\n")
            Glibc.exit(2)
        } catch {
            let isAsked = exitCode(for: error) == .success
            let text = fullMessage(for: error) + "\n"
            if isAsked { print(text, terminator: "") } else { DiagnosticOutput.write(text) }
            Glibc.exit(isAsked ? 0 : 2)
        }
    }
}

/// Messages for people.
enum DiagnosticOutput {
    static func write(_ text: String) {
        let bytes = Array(text.utf8)
        // If this fails, no channel is left for a report.
        _ = bytes.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
    }

    static var isTerminal: Bool { isatty(2) == 1 }
}

/// Files that are read and written whole.
enum TextFile {
    /// The most bytes that are read: the most content that is sent.
    private static let readMax = ContentPlan.sizeMax

    static func read(_ path: String) throws(LoadError) -> [UInt8] {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw LoadError("\(path): can't be read")
        }
        let data: Data
        do {
            // At the end of the file there is no data, which is no error: the file is empty.
            data = try file.read(upToCount: readMax + 1) ?? Data()
        } catch {
            throw LoadError("\(path): can't be read")
        }
        guard data.count <= readMax else {
            throw LoadError("\(path): has more than \(readMax >> 20) MiB")
        }
        return [UInt8](data)
    }

    /// Replaces a whole file, so that a crash leaves the old one or the new one.
    static func write(_ path: String, _ text: String) throws(LoadError) {
        do {
            try text.write(toFile: path, atomically: true, encoding: .utf8)
        } catch {
            throw LoadError("\(path): can't be written")
        }
    }
}

/// Files that others may not read.
enum SecretFile {
    static func write(_ path: String, _ text: String) throws(LoadError) {
        let isWritten = FileManager.default.createFile(
            atPath: path,
            contents: Data(text.utf8),
            attributes: [.posixPermissions: 0o600]
        )
        guard isWritten else { throw LoadError("\(path): can't be written") }
    }
}

/// A fleet on disk.
enum FleetFile {
    static func read(_ path: String) throws(LoadError) -> DeviceFleet {
        guard let fleet = DeviceFleet(text: try TextFile.read(path)) else {
            throw LoadError("\(path): is no fleet; `portcullis-load prepare` makes one")
        }
        return fleet
    }

    static func write(_ path: String, _ fleet: DeviceFleet) throws(LoadError) {
        try TextFile.write(path, fleet.text)
    }
}

extension UnixTime {
    /// The machine's wall clock.
    static var current: UnixTime { UnixTime(seconds: Int64(time(nil))) }
}

/// The gateway, and its demands.
struct TargetOptions: ParsableArguments {
    @Option(help: "The gateway's configuration: what it asks of the request is read from it.")
    var config: String

    @Option(help: "Connect to this address and not to the URL's host: IP:port or unix:/path.")
    var connect: String?

    @Option(help: "For https: a PEM file with the certificates to trust, and no others.")
    var ca: String?

    @Option(help: "How long to wait until the gateway takes connections, such as 10s.")
    var wait: String?

    /// Waits for the gateway where `--wait` says so.
    func awaitGateway(_ server: ServerPlace) throws(LoadError) {
        guard let wait else { return }
        guard let time = LoadTime(wait) else {
            throw LoadError("--wait \(wait): use a whole number and ms, s, m or h")
        }
        server.awaitGateway(within: time) {
            DiagnosticOutput.write("waiting at most \(wait) for the gateway\n")
        }
    }

    func configuration() throws(LoadError) -> GatewayConfiguration {
        try Self.configuration(config)
    }

    /// Reads a configuration; its problems go to standard error.
    static func configuration(_ config: String) throws(LoadError) -> GatewayConfiguration {
        let loaded = ConfigurationLoader.load(config)
        for problem in loaded.errors { DiagnosticOutput.write(problem.text + "\n") }
        guard let configuration = loaded.configuration else {
            throw LoadError("\(config): is refused; `portcullis check \(config)` says more")
        }
        return configuration
    }

    static func url(_ text: String) throws(LoadError) -> LoadURL {
        guard let url = LoadURL(text) else {
            throw LoadError("\(text): use http://HOST[:PORT]/PATH or https://…")
        }
        return url
    }

    func server(_ url: LoadURL) throws(LoadError) -> ServerPlace {
        var context: TLSContext?
        if url.isSecure {
            do throws(TLSContextError) {
                context = try TLSContext(clientTrusting: ca.map { .file($0) } ?? .system)
            } catch {
                throw LoadError("\(ca ?? "the system's certificates"): \(error)")
            }
        }
        guard let address = address(url) else {
            throw LoadError("\(connect ?? url.host): is no address")
        }
        return ServerPlace(address, tls: context, host: url.host)
    }

    private func address(_ url: LoadURL) -> SocketAddress? {
        guard let connect else { return SocketAddress.resolve(url.host, port: url.port).first }
        if connect.hasPrefix("unix:") {
            return SocketAddress(unixPath: String(connect.dropFirst(5)))
        }
        guard let place = LoadURL("http://\(connect)/") else { return nil }
        return SocketAddress.resolve(place.host, port: place.port).first
    }
}
