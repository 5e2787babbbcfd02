package import Rules

/// What is logged, and where to.
package struct LogSettings: Hashable, Sendable {
    package enum Access: Hashable, Sendable {
        /// Standard output. The default.
        case on
        case off
        /// A file that lines are appended to.
        case file(String)
    }

    /// How the lines of the access log are written.
    package enum Format: String, CaseIterable, Sendable { case json, combined }

    /// How a line of JSON says when the request ended.
    package enum Time: String, CaseIterable, Sendable {
        case milliseconds = "ms"
        case iso8601
    }

    /// The names of swift-log.
    package enum Level: String, CaseIterable, Sendable {
        case trace, debug, info, notice, warning, error, critical
    }

    /// `access`: one line for each request.
    package var access = Access.on
    /// `format`: of the access log. Default json.
    package var format = Format.json
    /// `time`: in lines of JSON. Default ms.
    package var time = Time.milliseconds
    /// `sample`: the share of admitted requests that have a line. Default 100%.
    package var sample = Share.whole
    /// `level`: of what the gateway says about itself, on standard error. Default info.
    package var level = Level.info

    package init() {}

    private static let keys = ["access", "format", "time", "sample", "level"]

    init(_ node: SourceNode?, folder: String, log: ProblemLog) {
        self.init()
        guard let node,
            let reader = MappingReader(node, "log", keys: Self.keys, log: log)
        else { return }
        let access = reader.value(
            "access",
            use: "on | off | a file's path with a slash",
            words: ["on", "off"]
        ) { text -> Access? in
            switch text {
            case "on": .on
            case "off": .off
            default: text.contains("/") ? .file(FilePath.joined(folder, text)) : nil
            }
        }
        if let access { self.access = access.value }
        if let format = reader.word("format", Format.self) { self.format = format.value }
        if let time = reader.word("time", Time.self) { self.time = time.value }
        let sample = reader.value("sample", use: "a percentage, 0%…100%") { Share(percent: $0) }
        if let sample { self.sample = sample.value }
        if let level = reader.word("level", Level.self) { self.level = level.value }
    }
}
