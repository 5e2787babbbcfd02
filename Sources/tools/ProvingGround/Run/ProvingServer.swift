import Foundation
package import LoopbackSockets
import Signatures
import SoftwareAuthenticator
import Synchronization

/// Serves a driver: hands it the steps of all cases, and reports what came of them.
package final class ProvingServer: Sendable {
    /// What a server is made from.
    package struct Settings: Sendable {
        /// The path of `portcullis`.
        package var program: String
        package var address = "127.0.0.1"
        package var port: UInt16 = 0
        package var cases: [ProvingCase]
        /// Called with a line for each request and each call of the device.
        package var trace: (@Sendable (String) -> Void)?
        /// Called with each row as it ends.
        package var rowEnded: @Sendable (ProvingReport.Row) -> Void = { _ in }
        /// Called with the report, before the driver hears of the end.
        package var ended: @Sendable (ProvingReport) -> Void = { _ in }

        package init(program: String, cases: [ProvingCase]) {
            (self.program, self.cases) = (program, cases)
        }
    }

    private let settings: Settings
    private let server: LoopbackServer
    private let runs: CurrentRun

    /// Where the driver reaches it.
    package var port: UInt16 { server.port }

    /// Begins to serve.
    package init(_ settings: Settings) throws(ToolError) {
        self.settings = settings
        let runs = CurrentRun(settings)
        self.runs = runs
        server = try LoopbackServer(on: settings.address, port: settings.port) { request in
            runs.answer(request)
        }
    }

    /// Ends it, with what runs: no gateway is left, and no folder.
    package func stop() {
        runs.close()
        server.stop()
    }

    static func json(_ object: [String: Any]) -> Data {
        let data = try? JSONSerialization.data(withJSONObject: object, options: [.sortedKeys])
        return data ?? Data("{}".utf8)
    }
}

/// The run of the driver that came last.
private final class CurrentRun: Sendable {
    private let settings: ProvingServer.Settings
    private let channel = Mutex<DriverChannel?>(nil)
    private let running = RunningGateways()

    init(_ settings: ProvingServer.Settings) { self.settings = settings }

    func close() {
        channel.withLock { $0?.close() }
        running.close()
    }

    func answer(_ request: ServedRequest) -> ServedAnswer? {
        guard request.method == "POST", request.path == "/next" else {
            return Self.refused(404, "the driver calls POST /next")
        }
        let content = Data(request.content)
        if let introduction = try? JSONDecoder().decode(ClientIntroduction.self, from: content) {
            guard let platform = ProvingPlatform(rawValue: introduction.platform) else {
                return Self.refused(400, "platform is ios or android")
            }
            let offers = introduction.offers ?? []
            if let strange = offers.first(where: { ClientOffer(rawValue: $0) == nil }) {
                let known = ClientOffer.allCases.map(\.rawValue).joined(separator: ", ")
                return Self.refused(400, "“\(strange)” is no offer; use \(known)")
            }
            begin(
                ProvenClient(
                    name: introduction.client,
                    platform: platform,
                    offers: Set(offers.compactMap(ClientOffer.init)),
                    host: String((request["Host"] ?? settings.address).prefix { $0 != ":" })
                )
            )
        } else {
            channel.withLock { $0 }?.deliver(content)
        }
        guard let current = channel.withLock({ $0 }) else {
            return Self.refused(400, #"begin with {"client": NAME, "platform": "ios"}"#)
        }
        guard let step = current.next() else { return Self.refused(503, "there is no step") }
        return .json(200, Array(step))
    }

    private static func refused(_ status: Int, _ text: String) -> ServedAnswer {
        .json(status, Array(ProvingServer.json(["error": text])))
    }

    private func begin(_ client: ProvenClient) {
        let next = DriverChannel()
        let before = channel.withLock { current in
            defer { current = next }
            return current
        }
        // A driver that comes again begins again.
        before?.close()
        let run = ProvingRun(settings, client: client, channel: next, running: running)
        Thread.detachNewThread { run.play() }
    }
}

/// A client as its driver has introduced it.
private struct ProvenClient: Sendable {
    let name: String
    let platform: ProvingPlatform
    let offers: Set<ClientOffer>
    /// By what name the driver reaches this machine.
    let host: String
}

/// All cases with one client.
private struct ProvingRun: Sendable {
    let settings: ProvingServer.Settings
    let client: ProvenClient
    let channel: DriverChannel
    private let stand: StandSettings

    init(
        _ settings: ProvingServer.Settings,
        client: ProvenClient,
        channel: DriverChannel,
        running: RunningGateways
    ) {
        self.settings = settings
        (self.client, self.channel) = (client, channel)
        stand = StandSettings(
            program: settings.program,
            address: settings.address,
            platform: client.platform,
            authority: SoftwareAuthority(
                madeAt: UnixTime(seconds: Int64(Date().timeIntervalSince1970))
            ),
            running: running,
            trace: settings.trace
        )
    }

    func play() {
        var report = ProvingReport(client: client.name, platform: client.platform.rawValue)
        let played = settings.cases.filter { missing(in: $0).isEmpty }
        var next = played.first.map { StandInWork($0, stand) }
        var index = 0
        for proving in settings.cases {
            let missing = missing(in: proving)
            guard missing.isEmpty else {
                report.add(.notOffered(proving, missing), settings.rowEnded)
                continue
            }
            guard let work = next else { break }
            index += 1
            // The stand of the next case starts while this case runs.
            next = index < played.count ? StandInWork(played[index], stand) : nil
            guard let row = row(proving, work) else {
                next?.drop()
                return
            }
            report.add(row, settings.rowEnded)
        }
        settings.ended(report)
        channel.tell(
            ProvingServer.json([
                "do": "end", "passed": report.passed, "failed": report.failed,
            ])
        )
    }

    /// What the client does not offer.
    private func missing(in proving: ProvingCase) -> [String] {
        guard proving.platforms.contains(client.platform) else {
            return [proving.platforms.map(\.rawValue).joined(separator: " or ")]
        }
        return proving.needs.filter { !client.offers.contains($0) }.map(\.rawValue)
    }

    /// The row of a case; `nil` where the driver is gone.
    private func row(_ proving: ProvingCase, _ work: StandInWork) -> ProvingReport.Row? {
        let began = ContinuousClock.now
        var misses: [ProvingReport.Miss]
        switch work.value() {
        case .failure(let error):
            misses = [
                ProvingReport.Miss(step: "", expected: "a gateway", seen: error.text, line: 0)
            ]
        case .success(let made):
            var run = CaseRun(proving, on: made, by: channel, host: client.host)
            misses = run.run()
            made.end()
        }
        guard !channel.isClosed else { return nil }
        let seconds = (ContinuousClock.now - began) / .seconds(1)
        return .played(proving, misses, seconds: seconds)
    }
}

/// A stand that is being made on a thread of its own.
private final class StandInWork: Sendable {
    private let made = Mutex<Result<ProvingStand, ToolError>?>(nil)
    private let changed = NSCondition()

    init(_ proving: ProvingCase, _ settings: StandSettings) {
        Thread.detachNewThread { [self] in
            let result: Result<ProvingStand, ToolError>
            do throws(ToolError) {
                result = .success(try ProvingStand(proving, settings))
            } catch {
                result = .failure(error)
            }
            made.withLock { $0 = result }
            changed.withLock { changed.broadcast() }
        }
    }

    /// Waits for it. A gateway that does not start ends the wait by itself.
    func value() -> Result<ProvingStand, ToolError> {
        changed.withLock {
            while true {
                if let result = made.withLock({ $0 }) { return result }
                changed.wait()
            }
        }
    }

    /// Ends it unused.
    func drop() {
        if case .success(let stand) = value() { stand.end() }
    }
}
