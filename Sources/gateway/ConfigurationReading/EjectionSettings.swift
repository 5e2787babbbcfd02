/// When a server whose requests fail is passed over for a while: `eject`.
package struct EjectionSettings: Hashable, Sendable {
    /// `failures`: one after another; 0 for never. Default 5 (Envoy has 5, too).
    package var failures = 5
    /// `statuses`: those that are failures. Default 502, 503, 504.
    package var statuses = [502, 503, 504]
    /// `time`: of the first ejection; it doubles with each one. Default 10s (nginx has 10s).
    package var time: Duration = .seconds(10)
    /// `time_max`: the longest. Default 5m (as Envoy's).
    package var timeMax: Duration = .seconds(300)
    /// `share`: the most servers that are ejected at a time, in percent. Default 50 %.
    package var share = 50

    package init() {}

    init(_ node: SourceNode?, _ keyPath: String, log: ProblemLog) {
        let keys = ["failures", "statuses", "time", "time_max", "share"]
        guard let node, let reader = MappingReader(node, keyPath, keys: keys, log: log) else {
            return
        }
        if let value = reader.integer("failures", in: 0...1000) { failures = value.value }
        let use = "statuses from 400 to 599"
        let read: [Located<Int>]? = reader.list("statuses", of: use) { text in
            MappingReader.digits(text).flatMap { (400...599).contains($0) ? $0 : nil }
        }
        if let read { statuses = read.map(\.value) }
        let range = TimeoutSettings.range
        if let value = reader.duration("time", in: range) { time = value.value }
        if let value = reader.duration("time_max", in: range) { timeMax = value.value }
        if let value = reader.wholePercent("share") { share = value }
        guard timeMax < time else { return }
        log.error(
            reader.place(of: "time_max"),
            reader.path("time_max"),
            found: "\(timeMax.settingText), which is less than time, \(time.settingText)",
            use: "at least the time of the first ejection"
        )
    }
}

extension MappingReader {
    /// `0%` to `100%`, without decimals.
    func wholePercent(_ key: String) -> Int? {
        let share: Located<Int>? = value(key, use: "a whole percentage, 0%…100%") { text in
            guard text.hasSuffix("%") else { return nil }
            return Self.digits(text.dropLast()).flatMap { (0...100).contains($0) ? $0 : nil }
        }
        return share?.value
    }
}
