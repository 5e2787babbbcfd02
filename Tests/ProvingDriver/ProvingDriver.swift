import ClientKit
package import Foundation
import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// The package's driver of the proving ground: it asks for the next step, does it, and says what the
// app got. RemoteDevice is the device.

/// A driver for ``PortcullisSession``.
package final class ProvingDriver {
    private let server: RemoteCalls
    private let folder: URL
    private let misconduct: Misconduct?
    private var apps: [Int: DrivenApp] = [:]

    /// - server: where `portcullis-prove` listens.
    /// - folder: for the records of the client. It exists.
    package init(_ server: URL, folder: URL, misconduct: Misconduct? = nil) {
        (self.server, self.folder) = (RemoteCalls(server), folder)
        self.misconduct = misconduct
    }

    /// Plays all cases.
    ///
    /// - Returns: how many have failed.
    package func run() async throws -> Int {
        let offers = [
            "clock", "contexts", "device-tokens", "installs", "plan", "prewarm", "processes",
            "redirects", "reset", "sessions", "support",
        ]
        var result = StepResult(client: "swift", platform: "ios", offers: offers)
        while true {
            let step: Step = try await server.call("/next", result)
            if step.do == "end" { return step.failed ?? 0 }
            do {
                result = StepResult(answers: try await answers(to: step))
            } catch {
                result = StepResult(error: "\(error)")
            }
        }
    }

    /// Does a step.
    private func answers(to step: Step) async throws -> [DrivenAnswer] {
        guard let number = step.process else { throw DriverFault("no process") }
        if step.do == "start" {
            apps[number] = try DrivenApp(step, in: folder, misconduct)
            return []
        }
        guard let app = apps[number] else { throw DriverFault("no process \(number)") }
        switch step.do {
        case "send":
            return try await withThrowingTaskGroup(of: DrivenAnswer.self) { group in
                for request in step.requests ?? [] {
                    guard let app = apps[request.process] else { throw DriverFault("no process") }
                    group.addTask { try await app.answer(to: request) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
        case "clock": app.setAhead(by: step.ahead ?? 0)
        case "prewarm": Task { await app.session.prewarm() }
        case "reset":
            if let context = step.context {
                try await app.session.reset(context: Data(context.utf8))
            } else {
                await app.session.reset()
            }
        case "sign-out": await app.session.signOut()
        case "stop": apps[number] = nil
        default: throw DriverFault("an unknown step")
        }
        return []
    }
}

/// A step, as the proving ground says it.
private struct Step: Decodable {
    struct Request: Decodable {
        let process: Int
        let method: String
        let path: String
        let fields: [[String]]
        let content: Data?
    }

    let `do`: String
    let process: Int?
    let gateway: URL?
    let device: URL?
    let record: String?
    let ahead: Double?
    let supported: Bool?
    let plan: Bool?
    let sessions: Bool?
    let context: String?
    let requests: [Request]?
    let failed: Int?
}

/// What the proving ground gets: which client it is, and then what came of each step.
private struct StepResult: Encodable {
    var client: String?
    var platform: String?
    var offers: [String]?
    var answers: [DrivenAnswer]?
    var error: String?
}

/// An app under the driver.
private struct DrivenApp: Sendable {
    let session: PortcullisSession
    private let clock = ShiftedClock()
    private let gateway: URL
    private let misconduct: Misconduct?

    init(_ start: Step, in folder: URL, _ misconduct: Misconduct?) throws {
        guard let gateway = start.gateway, let device = start.device, let record = start.record
        else { throw DriverFault("no gateway, device or record") }
        (self.gateway, self.misconduct) = (gateway, misconduct)
        let service = RemoteDevice(device, isSupported: start.supported ?? true)
        var configuration = PortcullisConfiguration(gateway: gateway)
        configuration.routeMemory = .none
        configuration.clock = clock
        configuration.fetchesPlan = start.plan ?? false
        configuration.usesSessions = start.sessions ?? false
        configuration.context = start.context.map { Data($0.utf8) }
        configuration.deviceTokens = service
        let name = misconduct == .forgets ? UUID().uuidString : record
        session = PortcullisSession(
            configuration,
            service: service,
            store: FileEnrolmentStore(file: folder.appending(path: name)),
            transport: MisreadingTransport(misconduct)
        )
        setAhead(by: start.ahead ?? 0)
    }

    /// Moves the clock to so many seconds before the system's.
    func setAhead(by seconds: Double) {
        clock.advance(by: seconds - clock.now.timeIntervalSinceNow)
    }

    func answer(to step: Step.Request) async throws -> DrivenAnswer {
        guard let url = URL(string: gateway.absoluteString + step.path) else {
            throw DriverFault("\(step.path) is no path")
        }
        var request = URLRequest(url: url)
        // On Linux, URLSession waits this long where a connection has ended without an answer.
        request.timeoutInterval = 12
        (request.httpMethod, request.httpBody) = (step.method, step.content)
        for field in step.fields where field.count == 2 {
            request.setValue(field[1], forHTTPHeaderField: field[0])
        }
        let answer = await DrivenAnswer(to: request, session)
        guard misconduct == .insists, answer.outcome == "may-have-run" else { return answer }
        return await DrivenAnswer(to: request, session)
    }
}

/// What the app got for one request.
private struct DrivenAnswer: Sendable, Encodable {
    private(set) var outcome = "answered"
    private var status: Int?
    private var fields: [String: String] = [:]
    private var tokens: [String] = []
    private var error: String?

    init(to request: URLRequest, _ session: PortcullisSession) async {
        do {
            let (_, answer) = try await session.data(for: request)
            status = answer.statusCode
            for (name, value) in answer.response.allHeaderFields {
                fields["\(name)"] = "\(value)"
            }
            if answer.mayHaveRun {
                outcome = "may-have-run"
            } else if answer.proof == .none(.requestUnfit) {
                outcome = "unfit"
            } else if let refusal = answer.refusal, refusal.next == .getToken {
                (outcome, tokens) = ("get-token", refusal.tokens)
            }
        } catch {
            (outcome, self.error) = ("failed", "\(error)")
        }
    }
}
