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
