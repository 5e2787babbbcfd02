package import DeviceKey
package import HTTPWire
import Proxy
package import Rules
import Services
import Verification

/// A request as a person describes it: method, URL and fields, without content.
package struct RequestSketch: Sendable {
    package let method: String
    /// `https://api.example.com/v1/orders?dry=1`, or only a path; the host is then that of the
    /// `Host` field.
    package let url: String
    package let headers: [(name: String, value: String)]
    /// The client's key. Without it, the rule's key id field names the key.
    package var key: KeyID?
    /// The client's address. It decides the bucket of a request without a key id, and which rules
    /// are for the client; without it, those with `client` are for others.
    package var client: IPAddress?

    package init(method: String, url: String, headers: [(name: String, value: String)] = []) {
        self.method = method
        self.url = url
        self.headers = headers
    }

    /// Reads `name: value`, in the command line's form; `nil` without a colon.
    package static func header(_ line: String) -> (name: String, value: String)? {
        guard let colon = line.firstIndex(of: ":") else { return nil }
        let value = line[line.index(after: colon)...]
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        var trimmed = value.drop(while: isSpace)
        while let last = trimmed.last, isSpace(last) { trimmed.removeLast() }
        return (String(line[..<colon]), String(trimmed))
    }

    /// The head that a client would send.
    var head: (bytes: [UInt8], isSecure: Bool) {
        var target = url[...]
        var host: Substring?
        var isSecure = false
        for scheme in ["https://", "http://"] where url.lowercased().hasPrefix(scheme) {
            isSecure = scheme == "https://"
            let rest = url.dropFirst(scheme.count)
            let end = rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex
            host = rest[..<end]
            target = rest[end...]
            break
        }
        let slash = target.hasPrefix("/") || target == "*" ? "" : "/"
        var text = "\(method) \(slash)\(target) HTTP/1.1\r\n"
        let hasHost = headers.contains { $0.name.lowercased() == "host" }
        if !hasHost { text += "Host: \(host ?? "localhost")\r\n" }
        for header in headers { text += "\(header.name): \(header.value)\r\n" }
        return (Array((text + "\r\n").utf8), isSecure)
    }
}

/// The gateway's treatment of a sketched request, by the code that it uses for real ones.
struct RequestTrial: ~Copyable {
    enum Outcome {
        /// The request is answered with this status, whatever the rules demand.
        case refused(status: Int, reason: String)
        /// The gateway's own service of this name answers.
        case service(String)
        /// The gateway answers, since Max-Forwards allows no more hops.
        case lastHop
        case rule(Rule)
        /// One of several rules decides by its mode and its rollout, before any verdict.
        case disputed(DisputedRoute)

        /// The gateway's own answer, by its table.
        static func answered(_ outcome: LocalOutcome) -> Outcome {
            .refused(status: outcome.row.status, reason: outcome.reason)
        }
    }

    let bytes: [UInt8]
    let head: RequestHead
    let view: TargetView
    private let client: IPAddress?
    let outcome: Outcome
    /// The rule that was found, also if the request is refused afterwards.
    let rule: Rule?
    /// The other interpretations of a path, where they lead to another rule.
    let rivals: [RuleSet.Interpretation]

    init(_ sketch: RequestSketch, _ configuration: GatewayConfiguration) {
        self.init(sketch, configuration, services: configuration.ownServices)
    }

    /// A trial for many requests: `services` is ``GatewayConfiguration/ownServices``, which needs
    /// all rules.
    init(
        _ sketch: RequestSketch,
        _ configuration: GatewayConfiguration,
        services: ServiceTable
    ) {
        let (bytes, isSecure) = sketch.head
        var head = RequestHead()
        var view = TargetView()
        self.bytes = bytes
        client = sketch.client
        do throws(Malformed) {
            try head.read(bytes.span, isSecure: isSecure, limits: configuration.limits.requestHead)
        } catch {
            self.head = head
            self.view = view
            outcome = .answered(.malformed(error.reason))
            rule = nil
            rivals = []
            return
        }
        self.head = head
        if let answered = Self.answered(self.head, bytes.span, by: services) {
            self.view = view
            outcome = answered
            rule = nil
            rivals = []
            return
        }
        let rules = configuration.rules
        var rivals: [RuleSet.Interpretation] = []
        switch rules.destination(of: self.head, bytes.span, from: client, view: &view) {
        case .rule(let rule):
            self.rule = rule
            outcome = rule.mode == .deny ? .answered(.refused(.noRule)) : .rule(rule)
        case .unroutable(let rule, let reason):
            self.rule = rule
            outcome = .answered(.malformed(reason))
        case .disputed(let dispute):
            self.rule = dispute.found
            outcome = .disputed(dispute)
            guard dispute.reason == .pathAmbiguous else { break }
            rivals = rules.readings(
                method: bytes.span.extracting(self.head.methodRange),
                host: bytes.span.extracting(self.head.authority),
                from: client,
                view: &view
            ).filter(\.isRival)
        }
        self.rivals = rivals
        self.view = view
    }

    /// The gateway's answers without a rule.
    private static func answered(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        by services: ServiceTable
    ) -> Outcome? {
        switch services.find(head, bytes) {
        case .none: nil
        case .loop: .answered(.fault(.loopDetected))
        case .lastHop: .lastHop
        case .service(let entry): .service(entry.name)
        case .refused(let response, _): .answered(response.outcome)
        }
    }

    var method: String { text(head.methodRange) }
    var target: String { text(head.target) }
    var host: String { text(head.authority) }

    func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    /// The values of a field's lines.
    func values(_ name: [UInt8]) -> [String] {
        head.fields.fields.compactMap { field in
            bytes[field.name].map(HostPattern.lowerCase) == name ? text(field.value) : nil
        }
    }

    /// The key that the request names in the rule's field.
    var keyID: KeyID? {
        guard let rule, rule.readsKeys else { return nil }
        return values(rule.fields.keyID).first.flatMap { KeyID(base64: $0) }
    }

    /// Why the rule does not match, in words; `nil` when it does.
    func mismatch(_ rule: Rule) -> String? {
        let mismatch = rule.match.mismatch(
            method: bytes.span.extracting(head.methodRange),
            host: bytes.span.extracting(head.authority),
            from: client,
            view: view
        )
        switch mismatch {
        case .none: return nil
        case .host: return "host \(host) is not \(rule.match.host.text)"
        case .method:
            let methods = rule.match.methods?.joined(separator: ", ") ?? "*"
            return "method \(method) is not \(methods)"
        case .path: return "path \(text(head.path)) is not \(rule.match.path.text)"
        case .client:
            let from = client.map { "client \($0.text)" } ?? "a client without an address"
            return "\(from) is not from \(rule.match.clients?.text ?? "any")"
        }
    }
}

extension GatewayConfiguration {
    /// The paths that the gateway answers itself; this table serves nothing.
    var ownServices: ServiceTable {
        .unserved(
            below: settings.endpointsPath,
            sessions: sessionOpening,
            servesPlan: settings.servesPlan,
            servesKeySet: settings.verdict?.publishes ?? false,
            probes: settings.probes
        )
    }
}

/// The rule that a request matches, for programs that send what the rule demands.
package enum RuleLookup: Sendable {
    /// The rule that judges it.
    case rule(Rule)
    /// It is answered before any rule, or by the gateway itself, for this reason.
    case noRule(String)
}

extension GatewayConfiguration {
    /// Looks up the rule of a request by the code that routes real ones.
    package func rule(for sketch: RequestSketch) -> RuleLookup {
        switch RequestTrial(sketch, self).outcome {
        case .rule(let rule): .rule(rule)
        case .service: .noRule("one of the gateway's own endpoints")
        case .lastHop: .noRule("Max-Forwards allows no more hops")
        case .refused(_, let reason): .noRule(reason)
        case .disputed(let dispute): .noRule(dispute.reason.rawValue)
        }
    }
}
