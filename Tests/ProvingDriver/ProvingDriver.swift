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
        var result: [String: Any] = ["client": "swift", "platform": "ios", "offers": offers]
        while true {
            let step = try await server.call("/next", result)
            if step["do"] as? String == "end" { return step["failed"] as? Int ?? 0 }
            do {
                result = try await take(step)
            } catch {
                result = ["error": "\(error)"]
            }
        }
    }

    private func take(_ step: [String: Any]) async throws -> [String: Any] {
        let number = step["process"] as? Int
        let context = (step["context"] as? String).map { Data($0.utf8) }
        switch step["do"] as? String {
        case "start": apps[number ?? 1] = try DrivenApp(step, context, in: folder, misconduct)
        case "send": return ["answers": try await answers(to: step["requests"])]
        case "clock": try app(number).clock.advance(to: step)
        case "prewarm":
            let session = try app(number).session
            Task { await session.prewarm() }
        case "reset":
            let session = try app(number).session
            if let context {
                try await session.reset(context: context)
            } else {
                await session.reset()
            }
        case "sign-out": try await app(number).session.signOut()
        case "stop": apps[number ?? 1] = nil
        default: throw DriverFault("an unknown step")
        }
        return [:]
    }

    private func app(_ number: Int?) throws -> DrivenApp {
        guard let app = number.flatMap({ apps[$0] }) else { throw DriverFault("no such process") }
        return app
    }

    private func answers(to requests: Any?) async throws -> [[String: Any]] {
        let work = try (requests as? [[String: Any]] ?? []).map { request in
            let app = try app(request["process"] as? Int)
            return (app, try app.request(request))
        }
        return await withTaskGroup(of: DrivenAnswer.self) { group in
            for (app, request) in work { group.addTask { await app.answer(to: request) } }
            return await group.reduce(into: []) { $0.append($1.json) }
        }
    }
}

/// Why a step can't be done.
struct DriverFault: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// An app under the driver.
private struct DrivenApp: Sendable {
    let session: PortcullisSession
    let clock = ShiftedClock()
    private let gateway: String
    private let misconduct: Misconduct?

    init(
        _ start: [String: Any],
        _ context: Data?,
        in folder: URL,
        _ misconduct: Misconduct?
    ) throws {
        func text(_ name: String) throws -> String {
            guard let text = start[name] as? String else { throw DriverFault("no \(name)") }
            return text
        }
        (gateway, self.misconduct) = (try text("gateway"), misconduct)
        guard let url = URL(string: gateway), let place = URL(string: try text("device")) else {
            throw DriverFault("no gateway")
        }
        var configuration = PortcullisConfiguration(gateway: url)
        configuration.routeMemory = .none
        configuration.clock = clock
        configuration.fetchesPlan = start["plan"] as? Bool ?? false
        configuration.usesSessions = start["sessions"] as? Bool ?? false
        configuration.context = context
        let device = RemoteDevice(place, isSupported: start["supported"] as? Bool ?? true)
        configuration.deviceTokens = device
        let record = misconduct == .forgets ? UUID().uuidString : try text("record")
        session = PortcullisSession(
            configuration,
            service: device,
            store: FileEnrolmentStore(file: folder.appending(path: record)),
            transport: MisreadingTransport(misconduct)
        )
        clock.advance(to: start)
    }

    func request(_ step: [String: Any]) throws -> URLRequest {
        guard let url = URL(string: gateway + (step["path"] as? String ?? "/")) else {
            throw DriverFault("no path")
        }
        var request = URLRequest(url: url)
        // On Linux, URLSession waits this long where a connection has ended without an answer.
        request.timeoutInterval = 12
        request.httpMethod = step["method"] as? String
        request.httpBody = (step["content"] as? String).flatMap { Data(base64Encoded: $0) }
        for field in step["fields"] as? [[String]] ?? [] where field.count == 2 {
            request.setValue(field[1], forHTTPHeaderField: field[0])
        }
        return request
    }

    func answer(to request: URLRequest) async -> DrivenAnswer {
        let answer = await DrivenAnswer(to: request, session)
        guard misconduct == .insists, answer.outcome == "may-have-run" else { return answer }
        return await DrivenAnswer(to: request, session)
    }
}

extension ShiftedClock {
    /// Moves it forward to where a step has it: so many seconds before the system's.
    fileprivate func advance(to step: [String: Any]) {
        let ahead = (step["ahead"] as? NSNumber)?.doubleValue ?? 0
        advance(by: ahead - now.timeIntervalSinceNow)
    }
}

/// What the app got for one request.
private struct DrivenAnswer: Sendable {
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

    var json: [String: Any] {
        var json: [String: Any] = ["outcome": outcome, "fields": fields, "tokens": tokens]
        (json["status"], json["error"]) = (status, error)
        return json
    }
}
