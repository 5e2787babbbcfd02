import ArgumentParser
import Cryptography
import Dispatch
import Foundation
import Glibc
import LoopbackSockets
import ProvingGround
import Synchronization

// The proving ground of clients, as a program: options, files and the exit status. All else is in
// the library ProvingGround.

/// Exit status: 0 when all cases passed, 1 when one failed, 2 for wrong usage and for what can't be
/// done.
@main
struct PortcullisProve: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "portcullis-prove",
        abstract: "Play gateway, network, origin and device around a client, and judge it.",
        discussion: """
            A driver of some 50 lines asks POST /next for what the client has to do. The guide is \
            Sources/client/docs/proving.md.

            The run ends when a driver has played all cases. Exits 0 when all passed, 1 when one \
            failed. SIGINT and SIGTERM end it before, with the gateways that it started and \
            without a report; the status is 128 and the signal's number then, as of a shell.
            """
    )

    @Option(help: "Where the driver reaches this program, and the client its gateway.")
    var listen = "127.0.0.1:8099"

    @Option(help: "Play only this group, or GROUP/NAME; may be repeated.")
    var only: [String] = []

    @Flag(help: "Play the first case of each group, and those that say always: true.")
    var short = false

    @Option(help: "The folder with the cases, unless it lies beside this program.")
    var cases: String?

    @Option(help: "The gateway's program, unless it lies beside this one.")
    var portcullis: String?

    @Option(help: "Write the report as JSON into this file.")
    var report: String?

    @Option(help: "Write the report as a page of HTML into this file.")
    var page: String?

    @Option(help: "Show this earlier report on the page, too; may be repeated.")
    var merge: [String] = []

    @Flag(help: "Print the cases and end.")
    var list = false

    @Flag(help: "Print each request, and each call of the device, as it comes.")
    var trace = false

    @Flag(help: "Serve on after a run: for drivers that are run again and again.")
    var keepServing = false

    func run() throws {
        OpenSSLCleanup.leaveToSystem()
        do throws(ToolError) {
            try play()
        } catch {
            let text = Array("portcullis-prove: \(error.text)\n".utf8)
            // If this fails, no channel is left for a report.
            _ = text.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
            throw ExitCode(2)
        }
    }

    private func play() throws(ToolError) {
        let places = ProgramPlaces()
        let named = try CaseFolder(casesFolder(places)).only(only)
        let chosen = short ? CaseFolder.short(of: named) : named
        guard !list else {
            for proving in chosen { print("\(proving.path): \(proving.name)") }
            return
        }
        var earlier: [ProvingReport] = []
        for path in merge { earlier.append(try Self.earlier(path)) }
        let (address, port) = try listenAddress()
        var settings = ProvingServer.Settings(program: try gateway(places), cases: chosen)
        (settings.address, settings.port) = (address, port)
        if trace { settings.trace = { Self.say($0) } }
        settings.rowEnded = { Self.say($0.text) }
        let ending = RunEnding()
        let (report, page, serves, others) = (report, page, keepServing, earlier)
        settings.ended = { done in
            Self.say("\n\(done.summary)")
            let fault = Self.write(done, others, report: report, page: page)
            if let fault { Self.say("portcullis-prove: \(fault)") }
            let status: Int32 = fault != nil ? 2 : done.failed == 0 ? 0 : 1
            if !serves { ending.end(with: status) }
        }
        let server = try ProvingServer(settings)
        Self.say("\(chosen.count) cases; the driver calls http://\(address):\(server.port)/next")
        let signals = EndingSignals(ending)
        let status = ending.wait()
        signals.stop()
        server.stop()
        guard status == 0 else { Glibc.exit(status) }
    }

    private func casesFolder(_ places: ProgramPlaces) throws(ToolError) -> String {
        if let cases { return cases }
        return try places.cases()
    }

    private func gateway(_ places: ProgramPlaces) throws(ToolError) -> String {
        if let portcullis { return portcullis }
        return try places.gateway()
    }

    /// Prints a line at once, also into a pipe.
    private static func say(_ text: String) {
        print(text)
        fflush(nil)
    }

    private func listenAddress() throws(ToolError) -> (String, UInt16) {
        let words = listen.split(separator: ":")
        guard words.count == 2, let port = UInt16(words[1]) else {
            throw ToolError("--listen \(listen): use ADDRESS:PORT, as 127.0.0.1:8099")
        }
        return (String(words[0]), port)
    }

    private static func earlier(_ path: String) throws(ToolError) -> ProvingReport {
        guard let data = FileManager.default.contents(atPath: path),
            let report = try? ProvingReport(json: data)
        else { throw ToolError("--merge \(path): use a file that --report has written") }
        return report
    }

    /// Writes both files.
    ///
    /// - Returns: what went wrong.
    private static func write(
        _ done: ProvingReport,
        _ earlier: [ProvingReport],
        report: String?,
        page: String?
    ) -> String? {
        if let report {
            guard let data = try? done.json(),
                FileManager.default.createFile(atPath: report, contents: data)
            else { return "\(report) can't be written" }
        }
        if let page {
            let text = ReportPage(earlier + [done]).html
            guard FileManager.default.createFile(atPath: page, contents: Data(text.utf8)) else {
                return "\(page) can't be written"
            }
        }
        return nil
    }
}

/// Waits for the end of the run.
private final class RunEnding: Sendable {
    private let status = Mutex<Int32>(0)
    // The style has no semaphores. Here the main thread waits for the run's.
    private let ended = DispatchSemaphore(value: 0)
    private let queue = DispatchQueue(label: "portcullis.prove.ending")

    /// Ends it at once.
    func interrupt(with status: Int32) {
        self.status.withLock { $0 = status }
        ended.signal()
    }

    func end(with status: Int32) {
        self.status.withLock { $0 = status }
        // The driver gets its last step before the program ends.
        queue.asyncAfter(deadline: .now() + .milliseconds(500)) { [ended] in
            ended.signal()
        }
    }

    func wait() -> Int32 {
        ended.wait()
        return status.withLock { $0 }
    }
}

/// Ends the run when an operator or a test ends the program.
private struct EndingSignals {
    private let sources: [any DispatchSourceSignal]

    init(_ ending: RunEnding) {
        let queue = DispatchQueue(label: "portcullis.prove.signals")
        sources = [SIGINT, SIGTERM].map { number in
            // The source hears of it in place of the default, which ends the process.
            Glibc.signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { ending.interrupt(with: 128 + number) }
            source.activate()
            return source
        }
    }

    func stop() { for source in sources { source.cancel() } }
}
