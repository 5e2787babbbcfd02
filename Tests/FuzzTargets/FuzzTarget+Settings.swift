import ConfigurationReading
import Cryptography
import HTTPWire
import KeyStore
import Rules

extension FuzzTarget {
    /// A configuration is either used or has an error; and its rules are found as by trying each.
    static func configuration(_ bytes: [UInt8]) {
        let loaded = ConfigurationLoader.load("fuzz.yaml", files: FuzzFiles(bytes: bytes))
        demand(
            (loaded.configuration == nil) == !loaded.errors.isEmpty,
            "a configuration is refused with an error and for no other reason"
        )
        guard let rules = loaded.configuration?.rules else { return }
        for path in ["/", "/v1/orders", "/v1//orders/", "/a;x/b", "/v1/orders/7/items"] {
            for (method, host) in [("GET", "a.test"), ("POST", "api.example.com:443")] {
                for client in [nil, IPAddress.v4(0x0A01_0203)] {
                    route(rules, method, host, path, from: client)
                }
            }
        }
    }

    private static func route(
        _ set: RuleSet,
        _ method: String,
        _ host: String,
        _ path: String,
        from client: IPAddress?
    ) {
        let (method, host, path) = (Array(method.utf8), Array(host.utf8), Array(path.utf8))
        var view = TargetView()
        view.read(path.span, 0..<path.count)
        let found = set.rules.dropLast().first {
            $0.match.mismatch(method: method.span, host: host.span, from: client, view: view) == nil
        }
        let first = (found ?? set.fallback).index
        let readings = set.readings(
            method: method.span,
            host: host.span,
            from: client,
            view: &view
        )
        demand(readings.first?.rule.index == first, "the index finds the first rule")
        let rivals = readings.filter(\.isRival).map(\.rule.index)
        switch set.route(method: method.span, host: host.span, from: client, view: &view) {
        case .rule(let rule):
            let isOpen = readings.allSatisfy { $0.rule.mode == .off }
            demand(rule.index == first, "the first rule is that of the path as written")
            demand(rivals.isEmpty || isOpen, "a rule that may refuse has it in all readings")
        case .disputed(let dispute) where dispute.reason == .methodCase:
            demand(dispute.found.index == first, "the first rule is that of the method as written")
        case .disputed(let dispute):
            demand(dispute.found.index == first, "the first rule is that of the path as written")
            let isMet = dispute.rivals.allSatisfy { rivals.contains($0.index) }
            demand(isMet || !dispute.isComplete, "a rival is met")
        case .malformed: break
        }
    }

    /// Two rules and a request, a line each: host and path; method, host and path.
    ///
    /// The text of a pattern is the pattern, and whoever covers another meets what it meets.
    static func rules(_ bytes: [UInt8]) {
        let lines = bytes.split(separator: 0x0A, maxSplits: 4, omittingEmptySubsequences: false)
        guard lines.count == 5 else { return }
        let hosts = lines[0..<2].map { HostPattern(text: String(decoding: $0, as: UTF8.self)) }
        let paths = lines[2..<4].map { try? PathPattern(String(decoding: $0, as: UTF8.self)) }
        let request = lines[4].split(separator: 0x20, maxSplits: 1)
        let host = Array(request.first ?? [])
        let path = Array(request.count > 1 ? request[1] : [])
        for pattern in hosts {
            guard let pattern else { continue }
            demand(HostPattern(text: pattern.text) == pattern, "a host pattern reads again")
            demand(pattern.covers(pattern), "a host pattern covers itself")
        }
        for pattern in paths {
            guard let pattern else { continue }
            demand((try? PathPattern(pattern.text)) == pattern, "a path pattern reads again")
            demand(pattern.covers(pattern), "a path pattern covers itself")
        }
        if let one = hosts[0], let other = hosts[1], one.covers(other), other.matches(host.span) {
            demand(one.matches(host.span), "who covers a host pattern meets its hosts")
        }
        var view = TargetView()
        view.read(path.span, 0..<path.count)
        guard let one = paths[0], let other = paths[1], one.covers(other) else { return }
        let segments = (0..<view.segmentCount).map { Array(view.bytes[view.segment($0)]) }
        if other.matches(segments) {
            demand(one.matches(segments), "who covers a path pattern meets its paths")
        }
    }

    /// A line of `keys import`: what is read is written, and reads again.
    static func keyLines(_ bytes: [UInt8]) {
        guard let record = try? KeyLine.record(bytes.span) else { return }
        let text = Array(KeyLine.text(record).utf8)
        guard text.count <= KeyLine.bytesMax else { return }
        demand((try? KeyLine.record(text.span)) == record, "a key that is written reads again")
    }

    /// Times, shares and sizes.
    static func times(_ bytes: [UInt8]) {
        if let time = UnixTime(iso8601: bytes.span) {
            let second = UnixTime(seconds: time.seconds)
            demand(UnixTime(iso8601: second.iso8601) == second, "a time reads again")
            demand(
                bytes.starts(with: Array(second.iso8601.utf8).dropLast()),
                "a time is written as it was read"
            )
        }
        let text = String(decoding: bytes, as: UTF8.self)
        if let share = Share(percent: text) {
            demand((0...1_000_000).contains(share.millionths), "a share is none to all")
            demand(Share(percent: share.text) == share, "a share reads again: \(share.text)")
        }
    }
}
