import Cryptography
import Encodings
package import HTTPWire

/// The requests that `portcullis doctor --through` sends through a front, and how they arrived.
///
/// A front is a proxy or CDN before the gateway, or a proxy that asks it for decisions. The doctor
/// opens ids on the operators' listener, sends requests whose path has them, and then asks what
/// arrived. The path of a trial belongs to the gateway, whether its id is open or not, so a trial
/// reaches no rule and no origin. Its answer is that of any unknown endpoint, so clients learn
/// nothing. Only the first request of an id is kept.
package struct FrontTrials: Sendable {
    /// The path of trials begins with the path of the endpoints and this.
    package static let suffix = "-trial/"
    /// The number of digits of an id: 128 random bits.
    package static let idCount = 32
    /// The most open ids; the oldest give way.
    package static let openMax = 32
    /// How long an id is open, in nanoseconds.
    package static let time: UInt64 = 60_000_000_000
    /// The most bytes of content that are read of a trial.
    package static let contentMax: UInt64 = 1 << 20

    private struct Trial {
        let id: [UInt8]
        let openedAt: UInt64
        var sighting: TrialSighting?
    }

    /// The path of the endpoints in use.
    package var endpoints = ""
    private var trials: [Trial] = []

    package init() {}

    /// Opens ids.
    ///
    /// - now: nanoseconds of a clock that never goes back.
    mutating func open(_ count: Int, now: UInt64) -> [String] {
        let ids = (0..<min(count, Self.openMax)).map { _ in
            Hex.text(RandomBytes.make(count: Self.idCount / 2))
        }
        trials.removeAll { now &- $0.openedAt > Self.time }
        trials += ids.map { Trial(id: Array($0.utf8), openedAt: now) }
        trials.removeFirst(max(0, trials.count - Self.openMax))
        return ids
    }

    /// Whether an id is open, and no request has come with it.
    func isOpen(_ id: [UInt8], now: UInt64) -> Bool { place(of: id, now) != nil }

    /// Keeps what has arrived.
    ///
    /// - Returns: whether the id is open, and this is its first request.
    mutating func arrived(_ id: [UInt8], _ sighting: TrialSighting, now: UInt64) -> Bool {
        guard let place = place(of: id, now) else { return false }
        trials[place].sighting = sighting
        return true
    }

    /// Keeps the content of what has arrived.
    mutating func read(_ id: [UInt8], _ content: TrialSighting.Content) {
        guard let place = trials.firstIndex(where: { $0.id == id }) else { return }
        trials[place].sighting?.content = content
    }

    /// What has arrived of the ids; `nil` for nothing.
    func sightings(_ ids: [String]) -> [TrialSighting?] {
        ids.map { id in trials.first { $0.id.elementsEqual(id.utf8) }?.sighting }
    }

    private func place(of id: [UInt8], _ now: UInt64) -> Int? {
        trials.firstIndex { trial in
            trial.id == id && now &- trial.openedAt <= Self.time && trial.sighting == nil
        }
    }
}

/// Keeps the open trials for all event loops.
package protocol TrialKeeping: Sendable {
    func change<Value: Sendable>(_ body: (inout FrontTrials) -> Value) -> Value
}

/// What arrived of a trial.
package struct TrialSighting: Sendable, Equatable {
    /// Content that was read to its end.
    package struct Content: Sendable, Equatable {
        package let count: Int
        /// Of SHA-256, in hexadecimal digits.
        package let digest: String

        package init(_ bytes: [UInt8]) {
            (count, digest) = (bytes.count, Hex.text(SHA256.digest(of: bytes).array))
        }

        package init(count: Int, digest: String) { (self.count, self.digest) = (count, digest) }
    }

    /// How the listener's proxy asks, as `decides` says it; empty where the gateway forwards.
    package var form = ""
    /// Whether that proxy is to send the content with its question: `content: whole`.
    package var asksWithContent = false
    /// Whether all of the request's content came, as far as its head tells.
    package var isWhole = true
    package var method = ""
    /// As it arrived.
    package var target = ""
    package var host = ""
    /// The lines of the fields in their order: `Name: value`.
    package var fields: [String] = []
    package var framing = ""
    /// `nil` where it was not read to its end.
    package var content: Content?

    package init() {}

    /// - asked: how and with which content another proxy asks; `nil` for a request to be forwarded.
    init(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        asked: (question: DecisionQuestion, content: AskedContent)?
    ) {
        form = asked?.question.form.rawValue ?? ""
        asksWithContent = asked?.question.content == .whole
        isWhole = asked?.content != .unseen
        method = Self.text(bytes, head.methodRange)
        target = Self.text(bytes, head.pathAndQuery)
        host = Self.text(bytes, head.authority)
        for field in head.fields.fields {
            fields.append("\(Self.text(bytes, field.name)): \(Self.text(bytes, field.value))")
        }
        switch head.framing {
        case .none, .untilClose: framing = "none"
        case .length: framing = "length"
        case .chunked: framing = "chunked"
        }
        if !head.framing.hasContent { content = Content([]) }
    }

    private static func text(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
        String(decoding: range.map { bytes[$0] }, as: UTF8.self)
    }

    /// The value of the field of this name; `nil` where it has no line. Several lines are joined.
    package func value(_ name: String) -> String? {
        let values = fields.compactMap { line -> Substring? in
            guard let colon = line.firstIndex(of: ":"),
                line[..<colon].lowercased() == name.lowercased()
            else { return nil }
            return line[colon...].dropFirst(2)
        }
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    // MARK: On the operators' listener

    private static let members: Set<String> = [
        "form", "asks", "whole", "method", "target", "host", "fields", "framing", "count", "digest",
    ]

    /// One line of JSON.
    var json: [UInt8] {
        var document = JSONWriter(.compact)
        document.object { document in
            document.member("form", form)
            document.member("asks", asksWithContent ? 1 : 0)
            document.member("whole", isWhole ? 1 : 0)
            document.member("method", method)
            document.member("target", target)
            document.member("host", host)
            document.texts("fields", fields)
            document.member("framing", framing)
            guard let content else { return }
            document.member("count", content.count)
            document.member("digest", content.digest)
        }
        return document.line
    }

    /// Reads such a line; `nil` where it tells of nothing that arrived.
    package init?(json: Span<UInt8>) {
        guard let document = JSONDocument(json, members: Self.members, lists: ["fields"]),
            let target = document.string("target"), let method = document.string("method")
        else { return nil }
        (self.method, self.target) = (method, target)
        form = document.string("form") ?? ""
        asksWithContent = document.integer("asks") == 1
        isWhole = document.integer("whole") == 1
        host = document.string("host") ?? ""
        fields = document.list("fields") ?? []
        framing = document.string("framing") ?? ""
        if let count = document.integer("count"), let digest = document.string("digest") {
            content = Content(count: count, digest: digest)
        }
    }
}

/// Reads the content of a trial, and answers as an unknown endpoint does.
struct TrialService: Service {
    let trials: any TrialKeeping
    let id: [UInt8]

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        let content = TrialSighting.Content(request.content)
        trials.change { $0.read(id, content) }
        return .now(ServiceResult(.fault(.endpointUnknown)))
    }
}

/// `POST /trials/open`, with a number as content, and `POST /trials/seen`, with a line for each id.
struct TrialCallService: Service {
    /// The call; the raw value is its path after `trials/`.
    enum Call: String, CaseIterable {
        /// Answers the path of trials, and a line for each id.
        case open
        /// Answers a line of JSON for each id: `{}` where nothing has arrived.
        case seen
    }

    let call: Call
    let trials: any TrialKeeping

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        let text = String(decoding: request.content, as: UTF8.self)
        let lines: [UInt8]
        switch call {
        case .open:
            let count = max(0, Int(text) ?? 0)
            let texts = trials.change { trials in
                [trials.endpoints + FrontTrials.suffix] + trials.open(count, now: request.tick)
            }
            lines = Array(texts.joined(separator: "\n").utf8)
        case .seen:
            let ids = text.split(separator: "\n").prefix(FrontTrials.openMax).map(String.init)
            let sightings = trials.change { $0.sightings(ids) }
            lines = sightings.flatMap { $0?.json ?? Array("{}\n".utf8) }
        }
        return .now(ServiceResult(LocalResponse(.served, as: "text/plain; charset=utf-8", lines)))
    }
}

extension ServiceEntry {
    static func trials(_ trials: any TrialKeeping) -> [ServiceEntry] {
        TrialCallService.Call.allCases.map { call in
            ServiceEntry(
                "trials/\(call.rawValue)",
                [.post],
                on: .init(takesContent: true, access: .call),
                by: TrialCallService(call: call, trials: trials)
            )
        }
    }
}

extension ServiceTable {
    /// What becomes of a request whose path is that of a trial; `nil` for any other.
    ///
    /// - asked: how and with which content another proxy asks about it.
    /// - now: nanoseconds of a clock that never goes back.
    package func trial(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        asked: (question: DecisionQuestion, content: AskedContent)?,
        now: UInt64
    ) -> Match? {
        // Every request comes here: the path is compared before the trials are taken in hand.
        guard let start = trialStart(bytes, head.path), let trials else { return nil }
        let unknown = Match.refused(LocalResponse(.fault(.endpointUnknown)), name: "trial")
        guard start + FrontTrials.idCount <= head.path.upperBound else { return unknown }
        let id = (start..<start + FrontTrials.idCount).map { bytes[$0] }
        // Strangers' ids cost no copy of the head.
        guard trials.change({ $0.isOpen(id, now: now) }) else { return unknown }
        let sighting = TrialSighting(head, bytes, asked: asked)
        guard trials.change({ $0.arrived(id, sighting, now: now) }) else { return unknown }
        return .service(
            ServiceEntry(
                "trial",
                [],
                on: .init(takesContent: true, contentMax: FrontTrials.contentMax),
                by: TrialService(trials: trials, id: id)
            )
        )
    }
}
