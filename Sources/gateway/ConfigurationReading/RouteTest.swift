import AppAttest
import HTTPWire
import Rules
package import Signatures

/// Requests with their expected results: `portcullis test FILE CASES`.
///
///     - request: POST https://api.example.com/v1/orders
///       headers: { app-attest-key-id: … }       # optional
///       client: 192.0.2.7                       # optional, for rollouts
///       at: 2026-12-15                          # optional, for schedules; else now
///       expect: { rule: place-order, mode: enforce, origin: shop, enforced: true }
///     - request: GET https://api.example.com/v1/a%2Fb
///       expect: { refused: path-encoded-slash }
package struct RouteTest: Sendable {
    /// A case, and how its result differs from what is expected.
    struct Result: Sendable {
        let place: Problem.Place
        let title: String
        let faults: [String]
    }

    /// Empty where the cases can't be read.
    let results: [Result]
    /// Why they can't.
    let problems: [Problem]

    /// 0 when all pass, 1 when one fails, 2 when the cases can't be read.
    package var exitStatus: Int32 {
        guard problems.isEmpty else { return 2 }
        return results.allSatisfy(\.faults.isEmpty) ? 0 : 1
    }

    /// One line for each case, then the count.
    package var text: String {
        guard problems.isEmpty else { return problems.map { $0.text + "\n" }.joined() }
        let lines = results.map { result in
            let word = result.faults.isEmpty ? "ok  " : "FAIL"
            let detail = result.faults.isEmpty ? "" : ": " + result.faults.joined(separator: "; ")
            return "\(word) \(result.place.text): \(result.title)\(detail)\n"
        }
        return lines.joined()
            + "\(results.count { $0.faults.isEmpty }) of \(results.count) pass\n"
    }

    /// Loads the cases and runs them.
    package init(
        _ path: String,
        _ configuration: GatewayConfiguration,
        now: UnixTime,
        files: some ConfigurationFiles = DiskFiles()
    ) {
        let log = ProblemLog.ofCases
        let cases = Self.cases(path, files: files, log: log)
        problems = log.sorted
        let isReadable = problems.isEmpty
        results = (isReadable ? cases : []).map { single in
            let faults = single.faults(configuration, now: now)
            return Result(place: single.place, title: single.title, faults: faults)
        }
    }

    private static func cases(
        _ path: String,
        files: some ConfigurationFiles,
        log: ProblemLog
    ) -> [RouteCase] {
        let bytes: [UInt8]
        do throws(FileFault) {
            bytes = try files.contents(of: path, limit: SourceNode.Bounds.bytesMax)
        } catch {
            let place = Problem.Place(file: path, line: 1)
            log.error(place, "", found: error.found, use: "a readable YAML file of at most 1MiB")
            return []
        }
        guard let root = SourceNode.read(bytes, file: path, use: "- request: …", log: log) else {
            return []
        }
        guard case .list(let nodes) = root.content else {
            log.error(root.place, "", found: root.found, use: "a list: - request: …")
            return []
        }
        return nodes.enumerated().compactMap { RouteCase($1, "[\($0)]", log: log) }
    }
}

/// One request and its expected result.
struct RouteCase {
    let place: Problem.Place
    let title: String
    private let sketch: RequestSketch
    private let time: UnixTime?
    private let rule: String?
    private let mode: Mode?
    private let origin: String?
    private let isEnforced: Bool?
    private let refusal: String?

    init?(_ node: SourceNode, _ keyPath: String, log: ProblemLog) {
        let keys = ["request", "headers", "client", "at", "expect"]
        guard let reader = MappingReader(node, keyPath, keys: keys, log: log) else { return nil }
        reader.require("request", use: "request: POST https://api.example.com/v1/orders")
        reader.require("expect", use: "expect: { rule: … }")
        let request = reader.value("request", use: "a method, a space and a URL") { text in
            let parts = text.split(separator: " ", maxSplits: 1)
            return parts.count == 2 ? (method: String(parts[0]), url: String(parts[1])) : nil
        }
        time =
            reader.value("at", use: "a date or a UTC time (2026-12-01T10:00:00Z)") { text in
                UnixTime(iso8601: text.utf8.count == 10 ? text + "T00:00:00Z" : text)
            }?.value
        var headers: [(name: String, value: String)] = []
        if let node = reader.node("headers"),
            let inner = MappingReader(node, reader.path("headers"), keys: [], log: log),
            case .mapping(let members) = node.content
        {
            for member in members {
                let value = inner.value(member.key, use: "a text") { $0 }
                if let value { headers.append((member.key, value.value)) }
            }
        }
        let keysOfExpect = ["rule", "mode", "origin", "enforced", "refused"]
        guard let request, let expect = reader.inner("expect", keys: keysOfExpect) else {
            return nil
        }
        guard keysOfExpect.contains(where: expect.has) else {
            log.error(expect, found: "nothing", use: keysOfExpect.joined(separator: ", "))
            return nil
        }
        place = reader.place
        title = "\(request.value.method) \(request.value.url)"
        var sketch = RequestSketch(
            method: request.value.method,
            url: request.value.url,
            headers: headers
        )
        sketch.client = reader.value("client", use: "an IP address") { IPAddress($0) }?.value
        self.sketch = sketch
        rule = expect.value("rule", use: "a rule's id") { $0 }?.value
        mode = expect.word("mode", Mode.self)?.value
        origin = expect.value("origin", use: "an origin's name") { $0 }?.value
        isEnforced = expect.flag("enforced")?.value
        refusal = expect.value("refused", use: "a reason, such as path-encoded-slash") { $0 }?.value
    }

    /// The differences from the expected result.
    func faults(_ configuration: GatewayConfiguration, now: UnixTime) -> [String] {
        let found = Explanation(sketch, configuration, now: time ?? now)
        var faults: [String] = []
        func compare(_ what: String, _ expected: String?, found actual: String?) {
            guard let expected, expected != actual else { return }
            faults.append("\(what) is \(actual ?? "none"), expected \(expected)")
        }
        let refused = refusal ?? (found.refusal == nil ? nil : "none")
        compare("refused", refused, found: found.refusal?.reason)
        compare("rule", rule, found: found.rule?.id)
        compare("mode", mode?.rawValue, found: found.rule?.mode.rawValue)
        compare("origin", origin, found: found.origin)
        let enforced = found.placement?.isEnforced ?? found.isEnforcedForAll
        let text = enforced.map(String.init) ?? "unknown"
        compare("enforced", isEnforced.map(String.init), found: text)
        return faults
    }
}

extension Explanation {
    /// Decides without a key and an address: whether the rule refuses none, or all.
    fileprivate var isEnforcedForAll: Bool? {
        guard let rule else { return nil }
        switch rule.mode {
        case .off, .observe: return false
        case .deny: return true
        case .enforce: break
        }
        switch rule.rollout.schedule {
        case .fixed(.whole): return true
        case .fixed(.none): return false
        case .fixed, .growing: return nil
        }
    }
}
