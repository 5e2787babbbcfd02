package import AppAttest
import Cryptography
import DeviceKey
package import Encodings
package import HTTPWire
package import KeyStore
package import Rules
package import Verification

/// One refusal as it is kept for `portcullis why`: the request, the findings, and the failed check.
///
/// It holds no secrets: only the short hash of a key, as in the log, and no query of a target.
package struct RefusalNote: Sendable {
    /// What happened to the request.
    package enum Fate: String, Sendable {
        /// The gateway answered instead of the origin.
        case answered
        /// The response could not be completed, and the connection was reset.
        case cutOff = "cut-off"
        /// The origin got it nevertheless: the rule observes, or the client is outside the rollout.
        case forwarded
    }

    /// What a head asks for. Long parts are cut: a note has a bounded size.
    package struct Asked: Sendable {
        /// The most bytes of host and path that are kept.
        package static let partMax = 256

        package let method: [UInt8]
        package let host: [UInt8]
        package let path: [UInt8]
        package let claims: ClientClaims

        package init(method: [UInt8], host: [UInt8], path: [UInt8], claims: ClientClaims = .init())
        {
            self.claims = claims
            self.method = method
            self.host = Self.bounded(host)
            self.path = Self.bounded(path)
        }

        private static func bounded(_ part: [UInt8]) -> [UInt8] {
            part.count <= partMax ? part : Array(part[..<partMax])
        }
    }

    /// The findings before a check failed.
    package struct Finding: Sendable {
        package let proof: ProofKind?
        /// The key that the request names.
        package let keyID: KeyID?
        package let level: Verdict.ProofLevel
        /// Of the key, where it is known.
        package let appID: String
        package let environment: KeyEnvironment?
        package let isEnforced: Bool
        /// The build that the device has signed.
        package let appVersion: AppVersion?

        package init(_ verdict: Verdict, isEnforced: Bool) {
            proof = verdict.proof
            keyID = verdict.keyID
            level = verdict.level
            appID = verdict.appID
            environment = verdict.environment
            appVersion = verdict.appVersion
            self.isEnforced = isEnforced
        }
    }

    /// Milliseconds since 1970.
    package let at: Int64
    package let id: RequestID
    package let trace: TraceID?
    package let client: IPAddress
    package let asked: Asked
    package let outcome: LocalOutcome
    package let fate: Fate
    /// The status that the client got; 0 for none.
    package let status: Int
    /// The rule, or the gateway's own endpoint.
    package let place: Place
    /// `nil` where nothing was judged.
    package var finding: Finding?

    /// The rule or endpoint that decided.
    package enum Place: Sendable {
        case rule(String, Mode)
        case endpoint(String)
    }

    package init(
        at: Int64,
        name: (id: RequestID, trace: TraceID?),
        asked: (by: IPAddress, for: Asked),
        end: (outcome: LocalOutcome, fate: Fate, status: Int),
        place: Place
    ) {
        self.at = at
        (id, trace) = name
        (client, self.asked) = asked
        (outcome, fate, status) = end
        self.place = place
    }
}

/// What an operator asks refusals by: a request id, a trace id, or a key by its short name or its
/// key id.
package struct RefusalName: Sendable {
    private let text: [UInt8]
    /// The beginning of the short name of a key, at least 4 of its 12 digits.
    private let keyDigits: String?

    /// `nil` for a text that can be none of them.
    package init?(_ text: [UInt8]) {
        // A key id goes no further, as into a fleet's database: its short name says as much here.
        let text = KeyID(base64: text.span).map { Array($0.logName.utf8) } ?? text
        guard RequestID(text.span, 0..<text.count) != nil else { return nil }
        self.text = text
        let isShort = text.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
        }
        let digits = isShort && (4...12).contains(text.count)
        keyDigits = digits ? String(decoding: text, as: UTF8.self) : nil
    }

    func names(_ note: RefusalNote) -> Bool {
        names([note.id.text, note.trace?.text ?? ""], note.finding?.keyID?.logName)
    }

    /// - key: the short name of the key.
    fileprivate func names(_ ids: [String], _ key: String?) -> Bool {
        if ids.contains(where: { $0.utf8.elementsEqual(text) }) { return true }
        guard let keyDigits, let key else { return false }
        return key.hasPrefix(keyDigits)
    }

    package var word: String { String(decoding: text, as: UTF8.self) }
}

/// A refusal in the words for operators, of this gateway or of another one of the fleet.
package struct ToldRefusal: Sendable {
    /// The most bytes of a text that is read of another gateway.
    private static let textMax = 16 << 10

    /// Milliseconds since 1970.
    fileprivate let at: Int64
    /// Request id and trace id.
    fileprivate let ids: [String]
    /// The short name of the key; empty where none is named.
    fileprivate let key: String
    /// Lines for people, and an object of JSON.
    fileprivate let text: String
    fileprivate let json: [UInt8]

    /// - gateway: its name; `nil` without a fleet.
    fileprivate init(_ note: RefusalNote, _ gateway: String?) {
        at = note.at
        ids = [note.id.text, note.trace?.text ?? ""]
        key = note.finding?.keyID?.logName ?? ""
        text = note.text(gateway)
        var out = JSONWriter(.compact)
        out.object { note.write(into: &$0, gateway) }
        json = out.bytes
    }
}

/// What `portcullis why` and the list of refusals tell.
package struct ToldRefusals: Sendable {
    /// The most refusals in an answer about a name, the latest ones.
    package static let namedMax = 20
    /// The most refusals of a list, the latest ones.
    package static let listedMax = 50

    /// The latest first.
    fileprivate var notes: [ToldRefusal]
    /// The gateways that were asked; `nil` without a fleet.
    package var gateways: ToldGateways?

    package var isEmpty: Bool { notes.isEmpty }

    /// - gateway: the gateway that has them; `nil` without a fleet.
    package init(_ notes: [RefusalNote], named name: RefusalName?, of gateway: String? = nil) {
        let latest = notes.sorted { $0.at > $1.at }.prefix(Self.most(name))
        self.notes = latest.map { ToldRefusal($0, gateway) }
    }

    private static func most(_ name: RefusalName?) -> Int { name == nil ? listedMax : namedMax }

    /// Adds those of another gateway that a name matches.
    package mutating func add(_ others: ToldRefusals, named name: RefusalName?) {
        let named = others.notes.filter { note in name?.names(note.ids, note.key) ?? true }
        notes = Array((notes + named).sorted { $0.at > $1.at }.prefix(Self.most(name)))
    }

    /// A block of lines for each, then remarks about gateways that have not answered.
    var text: String {
        let remarks = (gateways?.remarks ?? []).map { $0 + "\n" }.joined()
        return notes.map(\.text).joined(separator: "\n") + (remarks.isEmpty ? "" : "\n" + remarks)
    }

    /// All of them as a document.
    var json: [UInt8] {
        var end = JSONWriter(.compact)
        end.object { gateways?.write(into: &$0) }
        let list = notes.map(\.json).joined(separator: [UInt8(ascii: ",")])
        let rest = gateways == nil ? Array("}".utf8) : [UInt8(ascii: ",")] + end.bytes.dropFirst()
        return Array("{\"refusals\":[".utf8) + list + [UInt8(ascii: "]")] + rest
            + [UInt8(ascii: "\n")]
    }

    /// What another gateway reads.
    package var told: [UInt8] {
        var out = ByteWriter()
        out.short(UInt64(notes.count))
        for note in notes {
            out.number(note.at)
            for word in note.ids + [note.key, note.text] { out.text(word) }
            out.block(note.json)
        }
        return out.bytes
    }

    /// - told: ``told`` of another gateway.
    package init(told: [UInt8]) throws(ByteReader.Fault) {
        var reader = ByteReader(told)
        notes = []
        for _ in 0..<(try reader.short(max: UInt64(Self.listedMax))) {
            notes.append(try ToldRefusal(&reader))
        }
        try reader.end()
    }
}

extension ToldRefusal {
    fileprivate init(_ reader: inout ByteReader) throws(ByteReader.Fault) {
        at = try reader.number()
        let first = try reader.text(max: Self.textMax)
        ids = [first, try reader.text(max: Self.textMax)]
        key = try reader.text(max: Self.textMax)
        text = try reader.text(max: Self.textMax)
        json = try reader.block(max: Self.textMax)
    }
}

extension RefusalNote {
    private var time: String { UnixTime(seconds: at / 1000).iso8601 }

    /// The text for people: the result, the request, the findings, and the client's next step.
    fileprivate func text(_ gateway: String?) -> String {
        let row = outcome.row
        var lines = ["\(time) \(outcome.reason): \(row.title)"]
        lines.append("  asked   \(word(asked.method)) \(word(asked.host)) \(word(asked.path))")
        lines.append("          by \(client.text), request id \(id.text)")
        if let trace { lines[2] += ", trace id \(trace.text)" }
        switch place {
        case .rule(let id, let mode): lines.append("  rule    \(id), \(mode.rawValue)")
        case .endpoint(let name): lines.append("  call    of the endpoint \(name)")
        }
        if let clientText { lines.append("  of      \(clientText)") }
        if let gateway { lines.append("  gateway \(gateway)") }
        lines.append("  found   " + foundText)
        lines.append("  answer  " + answerText)
        lines.append("  client  " + row.nextStep.advice)
        return lines.joined(separator: "\n") + "\n"
    }

    private var build: AppBuild {
        AppBuild(signed: finding?.appVersion, claimed: asked.claims.version)
    }

    /// Build and system; `nil` where neither is known.
    private var clientText: String? {
        var parts: [String] = []
        if build.version != nil { parts.append("build \(build.text)") }
        if let system = asked.claims.system { parts.append("\(system.text) (claimed)") }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    private var foundText: String {
        guard let finding else { return "nothing was verified" }
        guard let keyID = finding.keyID else { return "no key is named" }
        var text = "key \(keyID.logName)"
        text += finding.environment.map { ", \(finding.appID), \($0.rawValue)" } ?? ", not known"
        switch finding.level {
        case .claimed: text += "; it is not shown that the request comes from it"
        case .signed: text += "; it has signed the request"
        case .complete: text += "; it has signed the request, and the proof holds"
        }
        return text
    }

    private var answerText: String {
        switch fate {
        case .answered: "\(status)"
        case .cutOff: "the connection was reset"
        case .forwarded:
            "none of the gateway's: forwarded, since the rule or its rollout only observes"
        }
    }

    /// Bytes of a head that may go to a terminal.
    private func word(_ bytes: [UInt8]) -> String {
        guard !bytes.isEmpty else { return "-" }
        let shown = bytes.map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
        return String(decoding: shown, as: UTF8.self)
    }

    fileprivate func write(into json: inout JSONWriter, _ gateway: String?) {
        let row = outcome.row
        json.member("time", time)
        if let gateway { json.member("gateway", gateway) }
        json.member("request_id", id.text)
        if let trace { json.member("trace_id", trace.text) }
        json.member("client", client.text)
        json.member("method", word(asked.method))
        json.member("host", word(asked.host))
        json.member("path", word(asked.path))
        if let version = build.version {
            json.member("app_version", version.text)
            json.member("app_version_source", build.source.rawValue)
        }
        if let system = asked.claims.system {
            json.member("os", system.name.rawValue)
            json.member("os_version", system.version)
        }
        switch place {
        case .rule(let id, let mode):
            json.member("rule", id)
            json.member("mode", mode.rawValue)
        case .endpoint(let name): json.member("endpoint", name)
        }
        json.member("reason", outcome.reason)
        json.member("title", row.title)
        json.member("fate", fate.rawValue)
        json.member("status", status)
        if let finding {
            json.member("enforced", finding.isEnforced)
            if let proof = finding.proof { json.member("proof", proof.name) }
            if let keyID = finding.keyID { json.member("key", keyID.logName) }
            json.member("signed", finding.level >= .signed)
            if let environment = finding.environment {
                json.member("app", finding.appID)
                json.member("environment", environment.rawValue)
            }
        }
        json.member("next", row.nextStep == .unsaid ? nil : row.nextStep.rawValue)
        json.member("advice", row.nextStep.advice)
    }
}
