import ClientKit
package import Foundation
import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// The package's driver of the proving ground: it asks for the next step, does it, and says what the
// app got. RemoteDevice is the device.

/// What a driver does wrong on purpose, so that a test sees that cases fail.
package enum Misconduct: String, Sendable, CaseIterable {
    /// Sends an order again that may have run.
    case insists
    /// Takes every 401 for the gateway's.
    case obeysEveryone
    /// Uses no challenge of an answer.
    case dropsChallenges
    /// Keeps no record.
    case forgets
    /// Loses what says that a rule observes.
    case ignoresAdvice
}

/// A driver for ``PortcullisSession``.
package final class ProvingDriver {
    /// What a run came to.
    package struct End: Sendable {
        package let passed: Int
        package let failed: Int
    }

    private let server: RemoteCalls
    private let folder: URL
    private let misconduct: Misconduct?
    private var apps: [Int: DrivenApp] = [:]
    private var clock = ShiftedClock()

    /// - server: where `portcullis-prove` listens.
    /// - folder: for the records of the client. It exists.
    package init(_ server: URL, folder: URL, misconduct: Misconduct? = nil) {
        (self.server, self.folder) = (RemoteCalls(server), folder)
        self.misconduct = misconduct
    }

    /// Plays all cases.
    package func run() async throws -> End {
        let offers = [
            "clock", "contexts", "device-tokens", "installs", "plan", "prewarm", "processes",
            "redirects", "reset", "sessions", "support",
        ]
        var result: [String: Any] = ["client": "swift", "platform": "ios", "offers": offers]
        while true {
            let step = try await server.call("/next", result)
            if step["do"] as? String == "end" {
                return End(
                    passed: step["passed"] as? Int ?? 0,
                    failed: step["failed"] as? Int ?? 0
                )
            }
            do {
                result = try await take(step)
            } catch {
                result = ["error": "\(error)"]
            }
        }
    }

    private func take(_ step: [String: Any]) async throws -> [String: Any] {
        let process = step["process"] as? Int ?? 1
        if step["do"] as? String == "start" {
            apps[process]?.kill()
            apps[process] = try start(step, process)
            return [:]
        }
        if step["do"] as? String == "clock" {
            clock.advance(by: (step["seconds"] as? NSNumber)?.doubleValue ?? 0)
            return [:]
        }
        guard let app = apps[process] else { throw DriverFault("no process \(process)") }
        switch step["do"] as? String {
        case "send":
            let others = (step["beside"] as? [Int] ?? []).compactMap { apps[$0] }
            return ["answers": try await DrivenApp.answers(of: [app] + others, to: step)]
        case "prewarm": _ = await app.session.prewarm()
        case "reset":
            if let context = step["context"] as? String {
                try await app.session.reset(context: Data(context.utf8))
            } else {
                await app.session.reset()
            }
        case "sign-out": await app.session.signOut()
        case "stop": app.kill()
        default: throw DriverFault("an unknown step")
        }
        return [:]
    }

    private func start(_ step: [String: Any], _ process: Int) throws -> DrivenApp {
        guard let gateway = (step["gateway"] as? String).flatMap(URL.init(string:)),
            let device = (step["device"] as? String).flatMap(URL.init(string:))
        else { throw DriverFault("no gateway") }
        if step["state"] as? String == "new" || misconduct == .forgets {
            for app in apps.values { app.kill() }
            (apps, clock) = ([:], ShiftedClock())
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
                try FileManager.default.removeItem(at: folder.appending(path: name))
            }
        }
        var configuration = PortcullisConfiguration(gateway: gateway)
        configuration.routeMemory = .none
        configuration.clock = clock
        configuration.fetchesPlan = step["plan"] as? Bool ?? false
        configuration.usesSessions = step["sessions"] as? Bool ?? false
        configuration.context = (step["context"] as? String).map { Data($0.utf8) }
        let isAnother = step["state"] as? String == "another"
        let record = folder.appending(path: isAnother ? "record-\(process)" : "record")
        var remote = RemoteDevice(device)
        remote.isSupported = step["supported"] as? Bool ?? true
        return DrivenApp(configuration, gateway, remote, record, misconduct)
    }
}

/// Why a step can't be done.
struct DriverFault: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// An app under the driver: a session, and what ends with it.
struct DrivenApp {
    let session: PortcullisSession
    private let gateway: URL
    private let life: Life
    /// Whether it sends an order again that may have run.
    private let insists: Bool

    init(
        _ configuration: PortcullisConfiguration,
        _ gateway: URL,
        _ device: RemoteDevice,
        _ record: URL,
        _ misconduct: Misconduct?
    ) {
        var configuration = configuration
        let life = Life()
        let service = MortalService(life: life, device: device)
        configuration.deviceTokens = service
        (self.gateway, self.life, insists) = (gateway, life, misconduct == .insists)
        session = PortcullisSession(
            configuration,
            service: service,
            store: MortalStore(life: life, store: FileEnrolmentStore(file: record)),
            transport: MortalTransport(life: life, misconduct: misconduct)
        )
    }

    /// Ends it as a kill does: from now on it reaches nothing and writes nothing.
    func kill() { life.end() }

    /// Has each of them send a request as often as the step says, all at once.
    static func answers(
        of apps: [DrivenApp],
        to step: [String: Any]
    ) async throws -> [[String: Any]] {
        let numbers = 0..<(step["count"] as? Int ?? 1)
        let work = try apps.flatMap { app in
            try numbers.map { (app, try app.request(step, number: $0)) }
        }
        return await withTaskGroup(of: DrivenAnswer.self) { group in
            for (app, request) in work {
                group.addTask { [session = app.session, insists = app.insists] in
                    let answer = await DrivenAnswer(to: request, session)
                    guard insists, answer.mayHaveRun else { return answer }
                    return await DrivenAnswer(to: request, session)
                }
            }
            return await group.reduce(into: []) { $0.append($1.json) }
        }
    }

    private func request(_ step: [String: Any], number: Int) throws -> URLRequest {
        func filled(_ text: String) -> String { text.replacing("{n}", with: "\(number)") }
        let path = filled(step["path"] as? String ?? "/")
        guard let url = URL(string: gateway.absoluteString + path) else {
            throw DriverFault("\(path) is no path")
        }
        var request = URLRequest(url: url)
        // On Linux, URLSession waits this long where a connection has ended without an answer.
        request.timeoutInterval = 12
        request.httpMethod = step["method"] as? String
        request.httpBody = (step["content"] as? String).map { Data($0.utf8) }
        for field in step["fields"] as? [[String]] ?? [] where field.count == 2 {
            request.setValue(filled(field[1]), forHTTPHeaderField: field[0])
        }
        return request
    }
}

/// What the app got for one request.
private struct DrivenAnswer: Sendable {
    private var outcome = "answered"
    private var status: Int?
    private var fields: [String: String] = [:]
    private var tokens: [String] = []
    private var error: String?

    var mayHaveRun: Bool { outcome == "may-have-run" }

    init(to request: URLRequest, _ session: PortcullisSession) async {
        do {
            let (_, answer) = try await session.data(for: request)
            status = answer.statusCode
            for (name, value) in answer.response.allHeaderFields {
                fields["\(name)".lowercased()] = "\(value)"
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

    var json: [String: Any] {
        var json: [String: Any] = ["outcome": outcome, "fields": fields, "tokens": tokens]
        (json["status"], json["error"]) = (status, error)
        return json
    }
}
