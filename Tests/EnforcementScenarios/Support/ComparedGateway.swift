import Cryptography
import Encodings
import Foundation
import LoopbackKit
import TestSupport

/// A request as its client sends it.
struct PlayedRequest: Sendable {
    let name: String
    let bytes: [UInt8]
    /// The client says that nothing follows. Where the gateway has to end the connection by itself,
    /// the client does not.
    var endsSending = true
    /// The methods of the requests in the bytes; an answer to HEAD has no content.
    var methods: [String] = []
    /// A rule that judges may hold the content, which then goes on with its length.
    var isHeld = false
}

/// What came of a request: for its client, and at the origin.
struct RequestFate: Equatable, CustomStringConvertible {
    /// A request that came whole to the origin.
    struct Seen: Equatable {
        let line: String
        let fields: [String]
        let digest: String
        let trailers: [String]
    }

    /// Statuses, each with the reason or the origin's text.
    let answers: [String]
    let seen: [Seen]

    var description: String {
        "answered \(answers), at the origin \(seen.map { "\($0.line) \($0.fields)" })"
    }
}

/// One of several gateways that get the same requests, and whose origins answer alike.
final class ComparedGateway {
    /// How its rules treat what they don't like.
    enum Side: CaseIterable {
        /// No rule, and a default that is off.
        case off
        /// Every rule observes.
        case observing
        /// Every rule enforces, for a share of the clients that the client is not in.
        case outside

        /// The mode of each rule, as its members of YAML.
        var mode: String {
            switch self {
            case .off: "mode: off"
            case .observing: "mode: observe"
            case .outside: "mode: enforce, rollout: { percent: 0.0001% }"
            }
        }
    }

    private let scenario: Scenario
    private let origin: TestOrigin
    private let gateway: GatewayProcess
    private let probe: HTTPClient

    /// - rules: in YAML, with `MODE` for the members that say how a rule treats its requests.
    /// - fallback: the members of the default after its mode, for a gateway that judges.
    /// - more: further sections of the configuration.
    /// - keys: lines of enrolled keys.
    init(
        _ side: Side,
        rules: String,
        fallback: String,
        more: String = "",
        keys: String = ""
    ) throws {
        scenario = try Scenario()
        origin = try TestOrigin()
        try scenario.write("keys.json", TokenIssuer.set(.init("one")))
        try scenario.configure(
            origin: origin.address,
            apps: "  - \(Scenario.app)",
            rules: side == .off ? "[]" : rules.replacing("MODE", with: side.mode),
            // No connection is left over from an earlier request.
            more: "limits: { pooled: 0 }\n" + (side == .off ? "" : more),
            loops: 1,
            origins: "  twin: { servers: [\"\(origin.address)\"] }"
        )
        if side != .off {
            let file = scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let judging = "default: { origin: shop, \(side.mode), \(fallback) }"
            try scenario.write(
                "portcullis.yaml",
                text.replacing("default: { origin: shop, mode: off }", with: judging)
            )
        }
        try scenario.write("keys.jsonl", keys)
        try scenario.importHere("portcullis.yaml")
        gateway = try scenario.serve()
        probe = HTTPClient(port: gateway.port)
    }

    func end() {
        scenario.end()
        origin.stop()
    }

    /// Plays a request on a connection of its own.
    ///
    /// - Returns: what came of it, and the reasons that the origin read.
    func play(_ request: PlayedRequest) throws -> (fate: RequestFate, reasons: [String]) {
        let before = origin.now
        let answers = try answers(to: request)
        // The gateway has one event loop: what it did for the request is done once it answers this.
        let path = "/.well-known/app-attest/none"
        guard try probe.send("GET", path).status == 404, origin.settles() else {
            throw ChildProcess.Failure(description: "\(request.name): never at rest")
        }
        // A request that breaks off counts for no origin, and content that is held begins none.
        let seen = origin.connections(since: before).flatMap(\.requests)
        let fate = RequestFate(answers: answers, seen: seen.map { Self.seen($0, request) })
        return (fate, seen.flatMap { $0.head.all("App-Attest-Reason") })
    }

    private func answers(to request: PlayedRequest) throws -> [String] {
        let client = try Wire(port: gateway.port)
        do {
            try client.send(request.bytes)
            if request.endsSending { client.finishSending() }
        } catch WireFault.reset {
            // It has ended already; its answer is still to be read.
        }
        var answers: [String] = []
        do {
            while true {
                if client.inbox.isEmpty { try client.receive() }
                let place = answers.count
                let method =
                    request.methods.indices.contains(place) ? request.methods[place] : "GET"
                let answer = try client.readFinalResponse(to: method)
                let text = answer.status == 200 ? answer.text : answer.reason
                answers.append("\(answer.status) \(text)")
            }
        } catch WireFault.ended {
        } catch WireFault.reset {
        }
        return answers
    }

    /// What is compared of a request. Left out: the proof and the verdict, which only a gateway
    /// that judges takes out or adds, and the request's name, which differs each time.
    private static func seen(_ request: WireRequest, _ sent: PlayedRequest) -> RequestFate.Seen {
        let framing = ["content-length", "transfer-encoding"]
        let fields = request.head.fields.filter { field in
            let name = field.name.lowercased()
            return !name.hasPrefix("app-attest-") && name != "x-request-id"
                && !(sent.isHeld && framing.contains(name))
        }
        return RequestFate.Seen(
            line: request.head.startLine,
            fields: fields.map { "\($0.name): \($0.value)" },
            digest: Hex.text(SHA256.digest(of: request.body).array),
            trailers: request.trailers.map { "\($0.name): \($0.value)" }
        )
    }
}
