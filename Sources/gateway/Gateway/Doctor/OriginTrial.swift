import ConfigurationReading
import EventLoops
import HTTPWire
import Proxy
import Services

/// One request to each server of each origin, sent as the gateway would.
///
/// It is `GET` of the path of its `check`, or `HEAD /` without one, which has no effect on an API.
/// Lives on its own event loop.
final class OriginTrial {
    /// The most milliseconds for a server.
    private static let patience: UInt64 = 5_000

    private struct Row {
        let origin: UpstreamSettings
        let server: OriginServerSettings
        let client: HTTPClient
    }

    private let ended: @Sendable ([DoctorFinding]) -> Void
    private var findings: [DoctorFinding] = []
    private var rows: [Row] = []
    private var open = 0

    private init(_ ended: @escaping @Sendable ([DoctorFinding]) -> Void) { self.ended = ended }

    /// Asks all servers at once, and reports each answer.
    static func run(
        _ configuration: GatewayConfiguration,
        ended: @escaping @Sendable ([DoctorFinding]) -> Void
    ) {
        let servers = ServerRegistry(configuration, Resolver())
        let loop: EventLoop
        do throws(SocketError) {
            loop = try EventLoop(number: 0)
        } catch {
            return ended([.error(.origins, "\(error)", next: "raise the limit of descriptors")])
        }
        let origins = configuration.originSettings(
            servers,
            certificates: LoadedCertificates(configuration, TLSSurroundings()).origins,
            registry: OriginRegistry()
        )
        loop.start()
        loop.perform {
            let trial = OriginTrial {
                loop.stop()
                ended($0)
            }
            for (upstream, origin) in zip(configuration.origins, origins) {
                trial.add(upstream, origin, on: loop)
            }
            trial.begin()
        }
    }

    private func add(_ upstream: UpstreamSettings, _ origin: OriginSettings, on loop: EventLoop) {
        for server in origin.servers {
            var alone = origin
            alone.servers = [server]
            alone.rules.connectTimeout = min(origin.rules.connectTimeout, Self.patience)
            alone.rules.firstByteTimeout = Self.patience
            var settings = HTTPClient.Settings()
            settings.totalTimeout = Self.patience
            let client = HTTPClient(alone, settings, on: loop)
            rows.append(Row(origin: upstream, server: server, client: client))
        }
    }

    private func begin() {
        // The configuration already warns of a server without an address.
        guard !rows.isEmpty else { return ended([]) }
        open = rows.count
        for row in rows {
            let check = row.origin.rules.check
            let host = row.origin.host ?? row.server.name
            let request = check?.request(to: host) ?? HTTPRequest(.head, "/", authority: host)
            row.client.send(request) { [self] result in
                findings.append(Self.finding(row, request: request, result: result))
                open -= 1
                guard open == 0 else { return }
                ended(findings.sorted { $0.found < $1.found })
            }
        }
    }

    private static func finding(
        _ row: Row,
        request: HTTPRequest,
        result: Result<HTTPResponse, CallFault>
    ) -> DoctorFinding {
        let server = "\(row.origin.name): \(row.server.name)"
        let asked = "\(request.method.rawValue) \(request.target)"
        switch result {
        case .success(let response):
            let found = "\(server) answers \(response.status) to \(asked)"
            guard let check = row.origin.rules.check else { return .ok(.origins, found) }
            let wanted: String
            switch check.result(of: response) {
            case .passed: return .ok(.origins, found)
            case .status: wanted = "\(check.statuses.lowerBound)…\(check.statuses.upperBound)"
            case let other: wanted = "a server that serves, not \(other.text)"
            }
            return .error(
                .origins,
                "\(found), and its check wants \(wanted): it will get no requests",
                next: "mend the server; or correct the check's path, host or status"
            )
        case .failure(let fault):
            let (what, next) = text(of: fault, row.server.tls != nil)
            return .error(.origins, "\(server) \(what) (\(asked))", next: next)
        }
    }

    private static func text(of fault: CallFault, _ isTLS: Bool) -> (what: String, next: String) {
        switch fault {
        case .unreachable(_, let failure?):
            let detail = failure.detail.isEmpty ? "" : " (\(failure.detail))"
            let why = failure.reason.rawValue + detail
            return (
                "does not come to terms about TLS: \(why)",
                "tls: { ca: FILE } for an authority of your own, server_name for another name; "
                    + "no tls where it speaks plain HTTP"
            )
        case .unreachable(.originNotHTTP2, _):
            return (
                "does not speak HTTP/2",
                "http2: off; or see whether the server speaks HTTP/2 there, without an upgrade"
            )
        case .unreachable(.originTimeout, _):
            return (
                "does not take a connection in time",
                "see whether a firewall is in between, and whether the address is right"
            )
        case .unreachable:
            return (
                "takes no connection",
                "see whether it runs and listens on this address (from here: curl -v)"
            )
        case .timedOut, .firstByteTimedOut, .stalled:
            return (
                "takes the connection and does not answer within 5 s",
                "look at the server; it may be overloaded, or speak another protocol"
            )
        case .closed, .responseMalformed, .tooManyInterimResponses, .targetMalformed:
            return (
                "does not answer in HTTP/1.1: \(fault)",
                isTLS ? "see which protocol it speaks there" : "tls: verify where it speaks TLS"
            )
        case .contentTooLarge:
            return ("answers with more than is read", "a check's path with a short answer")
        }
    }
}
