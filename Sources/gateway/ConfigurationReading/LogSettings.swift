/// What is logged, and where to.
package struct LogSettings: Hashable, Sendable {
    package enum Access: Hashable, Sendable {
        /// Standard output. The default.
        case on
        case off
        /// A file that lines are appended to.
        case file(String)
    }

    /// The names of swift-log.
    package enum Level: String, CaseIterable, Sendable {
        case trace, debug, info, notice, warning, error, critical
    }

    /// `access`: one line for each request.
    package var access = Access.on
    /// `level`: of what the gateway says about itself, on standard error. Default info.
    package var level = Level.info

    package init() {}

    init(_ node: SourceNode?, folder: String, log: ProblemLog) {
        self.init()
        guard let node,
            let reader = MappingReader(node, "log", keys: ["access", "level"], log: log)
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
        if let level = reader.word("level", Level.self) { self.level = level.value }
    }
}
