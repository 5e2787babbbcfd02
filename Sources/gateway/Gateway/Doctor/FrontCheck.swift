import ConfigurationReading
import EventLoops
import Foundation
import HTTPWire
import Proxy
import RequestBinding
import Rules
import Services

/// The public address of a front, as an operator writes it.
package struct FrontAddress: Sendable {
    let host: String
    let port: UInt16
    let isTLS: Bool
    /// As clients send it in `Host`.
    let authority: String

    /// Reads `https://api.example.com` or `http://127.0.0.1:8000`; `nil` for anything else.
    package init?(_ text: String) {
        guard let parts = URLComponents(string: text), let host = parts.host, !host.isEmpty,
            parts.path.isEmpty || parts.path == "/", parts.query == nil, parts.user == nil,
            parts.scheme == "http" || parts.scheme == "https"
        else { return nil }
        isTLS = parts.scheme == "https"
        guard let port = UInt16(exactly: parts.port ?? (isTLS ? 443 : 80)), port > 0 else {
            return nil
        }
        self.port = port
        self.host = host.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
        let name = self.host.contains(":") ? "[\(self.host)]" : self.host
        authority = parts.port == nil ? name : "\(name):\(port)"
    }
}

/// Sends trials through a front, asks the gateway what arrived, and compares.
///
/// Lives on its own event loop while it sends.
final class FrontCheck {
    /// The most milliseconds for an answer through the front.
    private static let patience: UInt64 = 10_000

    /// What a client saw of a trial: a status, or why there is none.
    typealias Answer = Result<Int, CallFault>

    private let ended: @Sendable ([FrontTrial.Kind: Answer]) -> Void
    private var answers: [FrontTrial.Kind: Answer] = [:]
    private var clients: [HTTPClient] = []

    private init(_ ended: @escaping @Sendable ([FrontTrial.Kind: Answer]) -> Void) {
        self.ended = ended
    }

    static func run(
        _ configuration: GatewayConfiguration,
        _ front: FrontAddress,
        ended: @escaping @Sendable ([DoctorFinding]) -> Void
    ) {
        let trials = trials(configuration)
        let origin: OriginSettings
        do throws(Fault) {
            origin = try settings(front)
        } catch {
            return ended([error.finding])
        }
        call("open", "\(trials.count)", of: configuration, failed: ended) { lines in
            guard let path = lines.first, lines.count == trials.count + 1 else {
                return ended([unread])
            }
            let ids = lines.dropFirst().map(String.init)
            let targets = zip(trials, ids).map { "\(path)\($1)\($0.path)\($0.query)" }
            send(trials, targets, through: front, at: origin) { answers in
                let sent = ids.joined(separator: "\n")
                call("seen", sent, of: configuration, failed: ended) { lines in
                    let seen = lines.map { TrialSighting(json: Array($0.utf8).span) }
                    guard seen.count == trials.count else { return ended([unread]) }
                    let (report, sent) = (FrontReport(front: front), zip(trials, targets))
                    ended(report.findings(sent.map { ($0, $1) }, seen, answers: answers))
                }
            }
        }
    }

    /// The trials that the rules give reason to.
    private static func trials(_ configuration: GatewayConfiguration) -> [FrontTrial] {
        var contentMax: Int?
        for rule in configuration.rules.rules where rule.mode.verifies {
            guard rule.signing.coversBody, let limit = rule.body.limit else { continue }
            contentMax = max(contentMax ?? 0, limit.rawValue)
        }
        return FrontTrial.all(headers: configuration.fieldsOfRules, contentMax: contentMax)
    }

    private static let unread = DoctorFinding.error(
        .front,
        "the gateway's answer can't be read",
        next: "use the program of the gateway's own version"
    )

    /// Calls the running gateway.
    private static func call(
        _ name: String,
        _ content: String,
        of configuration: GatewayConfiguration,
        failed: @escaping @Sendable ([DoctorFinding]) -> Void,
        done: @escaping @Sendable ([Substring]) -> Void
    ) {
        let bytes = Array(content.utf8)
        let request = AdminCall.Request(.post, "/trials/\(name)", at: .call, content: bytes)
        AdminCall.send(request, to: configuration.admin) { result in
            switch result {
            case .success(let response) where response.status == 200:
                done(String(decoding: response.content, as: UTF8.self).split(separator: "\n"))
            case .success(let response):
                failed([
                    .error(
                        .front,
                        "the gateway answers \(response.status) to this call",
                        next:
                            "see which admin listener serves calls, and whether the gateway is of "
                            + "this version"
                    )
                ])
            case .failure(let fault):
                failed([.error(.front, fault.text, next: "start the gateway first")])
            }
        }
    }

    // MARK: Sending

    private struct Fault: Error {
        let finding: DoctorFinding
    }

    private static func settings(_ front: FrontAddress) throws(Fault) -> OriginSettings {
        let name = ServerAddress.name(front.host, port: front.port)
        guard case .addresses(let found)? = Resolver().addresses(of: [name])[name],
            let address = found.first
        else {
            let next = "use the address that clients use"
            throw Fault(finding: .error(.front, "\(front.host) has no address", next: next))
        }
        var server = OriginServerSettings(name: front.authority, address: address)
        if front.isTLS {
            do throws(TLSContextError) {
                let context = try TLSContext(clientTrusting: .system)
                server.tls = OriginTLS(context, name: front.host)
            } catch {
                let next = "see the machine's authorities"
                throw Fault(finding: .error(.front, "\(error)", next: next))
            }
        }
        var origin = OriginSettings(name: "front", servers: [server])
        origin.rules.connectTimeout = patience
        origin.rules.firstByteTimeout = patience
        return origin
    }

    /// Sends all trials at once.
    private static func send(
        _ trials: [FrontTrial],
        _ targets: [String],
        through front: FrontAddress,
        at origin: OriginSettings,
        ended: @escaping @Sendable ([FrontTrial.Kind: Answer]) -> Void
    ) {
        let loop: EventLoop
        do throws(SocketError) {
            loop = try EventLoop(number: 0)
        } catch {
            return ended([:])
        }
        loop.start()
        loop.perform {
            let check = FrontCheck {
                loop.stop()
                ended($0)
            }
            for (trial, target) in zip(trials, targets) {
                var settings = HTTPClient.Settings()
                settings.totalTimeout = patience
                let client = HTTPClient(origin, settings, on: loop)
                check.clients.append(client)
                let method = HTTPWire.Method(rawValue: trial.method) ?? .get
                var request = HTTPRequest(method, target, authority: front.authority)
                request.fields = trial.fields
                request.content = trial.content
                request.isChunked = trial.isChunked
                client.send(request) { result in
                    check.answers[trial.kind] = result.map(\.status)
                    if check.answers.count == trials.count { check.ended(check.answers) }
                }
            }
        }
    }
}

/// Says what a front changes.
struct FrontReport {
    let front: FrontAddress

    func findings(
        _ trials: [(trial: FrontTrial, target: String)],
        _ seen: [TrialSighting?],
        answers: [FrontTrial.Kind: FrontCheck.Answer]
    ) -> [DoctorFinding] {
        guard let form = seen.compactMap(\.self).first?.form else {
            return [
                .error(
                    .front,
                    "no request through \(front.authority) arrives at this gateway: "
                        + text(of: answers[.plain]),
                    next: FrontAdvice.text(.absent, form: "")
                )
            ]
        }
        // What was said of one trial is not said again of the next ones.
        var told: Set<FrontChange> = []
        return zip(trials, seen).flatMap { sent, seen -> [DoctorFinding] in
            let (trial, target) = sent
            guard let seen else { return [absence(of: trial, form, answers[trial.kind])] }
            let changes = trial.changes(seen, target: target, host: front.authority)
            guard !changes.isEmpty else {
                let size = trial.content.isEmpty ? "" : " with \(trial.content.count) bytes"
                let how = form.isEmpty ? "forwarded" : "asked about by \(form)"
                return [.ok(.front, "\(trial.kind.rawValue): \(how)\(size), unchanged")]
            }
            return changes.filter { told.insert($0).inserted }.map {
                finding($0, trial, target: target, sighting: seen)
            }
        }
    }

    private func text(of answer: FrontCheck.Answer?) -> String {
        switch answer {
        case .success(let status): "the front answers \(status)"
        case .failure(let fault): "the front gives no answer (\(fault))"
        case nil: "it could not be sent"
        }
    }

    /// The front, or the gateway's parser, has answered by itself.
    private func absence(
        of trial: FrontTrial,
        _ form: String,
        _ answer: FrontCheck.Answer?
    ) -> DoctorFinding {
        let found = "\(trial.kind.rawValue): does not arrive; \(text(of: answer))"
        func warning(_ topic: FrontAdvice.Topic) -> DoctorFinding {
            .warning(.front, found, next: FrontAdvice.text(topic, form: form))
        }
        switch trial.kind {
        case .plain, .headers: return warning(.absent)
        case .spelling: return .ok(.front, "\(found), so no such path or query is read in two ways")
        case .method: return warning(.method)
        case .fields: return .error(.front, found, next: FrontAdvice.text(.long, form: form))
        case .content, .chunks: return warning(.content)
        case .gzip: return warning(.decoded)
        case .large:
            return .warning(
                .front,
                "\(found) to \(trial.content.count) bytes, which rules allow",
                next: FrontAdvice.text(.size, form: form)
            )
        }
    }

    private func finding(
        _ change: FrontChange,
        _ trial: FrontTrial,
        target: String,
        sighting: TrialSighting
    ) -> DoctorFinding {
        let (count, form) = (trial.content.count, sighting.form)
        func error(_ found: String, _ topic: FrontAdvice.Topic) -> DoctorFinding {
            let next = FrontAdvice.text(topic, form: form)
            return .error(.front, "\(trial.kind.rawValue): \(found)", next: next)
        }
        func warning(_ found: String, _ topic: FrontAdvice.Topic) -> DoctorFinding {
            let next = FrontAdvice.text(topic, form: form)
            return .warning(.front, "\(trial.kind.rawValue): \(found)", next: next)
        }
        switch change {
        case .method(let method): return error("\(trial.method) arrives as \(method)", .method)
        case .path(let seen): return warning(spelling(target, seen, of: trial), .path)
        case .query(let seen): return warning(spelling(target, seen, of: trial), .query)
        case .host(let host): return warning("\(front.authority) arrives as \(host)", .host)
        case .fieldsLost(let names):
            return error("\(names.joined(separator: ", ")) lost on the way", .fields)
        case .fieldsRewritten(let names):
            return error("\(names.joined(separator: ", ")) rewritten on the way", .fields)
        case .contentLost where trial.kind == .large:
            return warning("none of \(count) bytes arrive, so they are refused", .size)
        case .contentLost where !form.isEmpty && !sighting.asksWithContent:
            return warning("none of \(count) bytes arrive with the question", .content)
        case .contentLost: return error("none of \(count) bytes arrive", .content)
        case .contentCut(let seen):
            let part = seen.map { "only \($0)" } ?? "not all"
            return error("\(part) of \(count) bytes arrive", .size)
        case .contentDecoded:
            return error("Content-Encoding: gzip is decoded: signatures don't fit", .decoded)
        case .contentRewritten: return error("\(count) bytes arrive as others", .rewritten)
        case .contentUnsure:
            return error("all bytes arrive, and the gateway can't know it", .unsure)
        case .lengthWritten:
            return .ok(
                .front,
                "\(trial.kind.rawValue): arrives with a length, unchanged: no signature covers "
                    + "chunks"
            )
        case .chunksWritten:
            return .ok(
                .front,
                "\(trial.kind.rawValue): arrives in chunks, unchanged: no signature covers a length"
            )
        }
    }

    /// Names both targets, without the path of all trials where that came as it was sent.
    private func spelling(_ target: String, _ seen: String, of trial: FrontTrial) -> String {
        var (sent, seen) = (target, seen)
        let tail = trial.path + trial.query
        let start = target.dropLast(tail.count)
        if !tail.isEmpty, seen.hasPrefix(start) {
            (sent, seen) = (tail, String(seen.dropFirst(start.count)))
        }
        return "\(sent) arrives as \(seen): signed as sent, it is refused"
    }
}
