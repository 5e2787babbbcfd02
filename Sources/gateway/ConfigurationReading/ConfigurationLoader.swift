import Cryptography
package import Parties
package import Rules

/// A configuration with its problems.
package struct LoadedConfiguration: Sendable {
    /// `nil` when there is an error among the problems.
    package let configuration: GatewayConfiguration?
    /// Errors and warnings, by file and line.
    package let problems: [Problem]
    /// What is absent and assumed to be right; empty where an absence is a problem.
    package private(set) var assumptions: [Assumption] = []
    /// The orders of operators about rollouts; empty until they were read.
    package var orders = RolloutOrders()

    /// The configuration with further problems, which were found later.
    package func adding(_ more: [Problem]) -> LoadedConfiguration {
        let problems = Problem.sorted(problems + more)
        let isRefused = problems.contains { $0.severity == .error }
        return LoadedConfiguration(
            configuration: isRefused ? nil : configuration,
            problems: problems,
            assumptions: assumptions,
            orders: orders
        )
    }

    /// The configuration with further assumptions, which were made later.
    package func assuming(_ more: [Assumption]) -> LoadedConfiguration {
        var loaded = self
        loaded.assumptions += more.filter { !assumptions.contains($0) }
        return loaded
    }

    package var errors: [Problem] { problems.filter { $0.severity == .error } }
    package var warnings: [Problem] { problems.filter { $0.severity == .warning } }
}

/// Reads a configuration and the files that it names.
package enum ConfigurationLoader {
    /// Loads a file. Relative paths in it are relative to its folder.
    ///
    /// Reads the file, the files of rules, apps and origins, and the certificates of test
    /// authorities; checks the files of TLS. It writes nothing, resolves no name and opens no
    /// socket.
    ///
    /// - offline: whether what is absent is assumed, of files, folders and variables. Such a
    ///   configuration is never served.
    /// - parties: those whose proofs the file may name.
    package static func load(
        _ path: String,
        offline: Bool = false,
        files: some ConfigurationFiles = DiskFiles(),
        parties: [any ProofParty.Type] = ProofParties.standard
    ) -> LoadedConfiguration {
        let log = ProblemLog(isOffline: offline, variable: files.variable)
        let configuration = read(path, files: files, parties: parties, log: log)
        return LoadedConfiguration(configuration: configuration, problems: [])
            .adding(log.problems)
            .assuming(log.assumptions?.all ?? [])
    }

    /// Loads the settings for commands about keys: the store and the apps.
    ///
    /// It reads no files of rules and compares no rules. So a key can be revoked while rules are
    /// edited, and at once however many there are.
    package static func loadStore(
        _ path: String,
        files: some ConfigurationFiles = DiskFiles()
    ) -> LoadedStore {
        let log = ProblemLog(variable: files.variable)
        let store = stated(path, files: files, log: log)?.validatedStore(files: files)
        return LoadedStore(settings: log.hasErrors ? nil : store, problems: log.sorted)
    }

    /// Where the gateway of a file is asked, also if the file or its rules are invalid now: a
    /// gateway that runs has read them before, and has to obey in an emergency. Empty where the
    /// file can't be read or names no admin listener.
    package static func adminListeners(
        _ path: String,
        files: some ConfigurationFiles = DiskFiles()
    ) -> [AdminListener] {
        let log = ProblemLog(variable: files.variable)
        guard let stated = stated(path, files: files, log: log) else { return [] }
        let named = NamedFiles(folder: stated.folder, disk: files, log: log)
        return stated.settings.admin.map { $0.readingToken(named) }
    }

    /// The admin listener of a running gateway at an address, for commands that get no
    /// configuration; `nil`, with problems, where the token can't be used.
    ///
    /// - tokenFile: the file of the token that the listener asks for; `nil` for none.
    package static func adminListener(
        at address: ServerAddress,
        tokenFile: String?,
        files: some ConfigurationFiles = DiskFiles()
    ) -> (listener: AdminListener?, problems: [Problem]) {
        let log = ProblemLog()
        log.note(Problem.Place(file: tokenFile ?? "", line: 1), of: "admin")
        let named = NamedFiles(folder: "", disk: files, log: log)
        let listener = AdminListener(asked: address, tokenFile: tokenFile).readingToken(named)
        return (log.hasErrors ? nil : listener, log.sorted)
    }

    private static func stated(
        _ path: String,
        files: some ConfigurationFiles,
        parties: [any ProofParty.Type] = ProofParties.standard,
        log: ProblemLog
    ) -> StatedConfiguration? {
        let use = "listen: …, origins: … and default: …"
        guard let root = SourceNode.load(path, use: use, files: files, log: log) else {
            return nil
        }
        let folder = FilePath.folder(of: path)
        let whole = root.including(from: folder, files, log)
        return StatedConfiguration(whole, folder: folder, parties: parties, log: log)
    }

    private static func read(
        _ path: String,
        files: some ConfigurationFiles,
        parties: [any ProofParty.Type],
        log: ProblemLog
    ) -> GatewayConfiguration? {
        guard let stated = stated(path, files: files, parties: parties, log: log) else {
            return nil
        }
        var rules: [StatedRule] = []
        switch stated.rules {
        case .none: break
        case .list(let list): rules = list
        case .folder(let folder):
            let files = FileFolder(folder: folder, content: .rules, files: files, log: log)
            rules = files.roots().flatMap { root -> [StatedRule] in
                if case .list(let list) = root.content {
                    return RuleSettings.all(list, at: "", log)
                }
                log.error(root.place, "", found: root.found, use: files.content.form)
                return []
            }
        }
        var configuration = stated.validated(rules: rules, files: files, log: log)
        var text: [UInt8] = []
        for rule in rules + [stated.fallback].compactMap(\.self) { rule.reader.append(to: &text) }
        configuration?.rulesDigest = SHA256.digest(of: text).array
        return configuration
    }
}

extension RolloutOrders {
    /// Orders that have no effect with a configuration, and those that enforce a rule whose file
    /// observes.
    package func problems(_ configuration: GatewayConfiguration) -> [Problem] {
        let rules = configuration.fileRules.rules
        let places = Dictionary(
            zip(rules.map(\.id), zip(rules, configuration.rulePlaces)),
            uniquingKeysWith: { first, _ in first }
        )
        return entries.sorted { $0.key < $1.key }.compactMap { id, entry in
            let what = "the order \(entry.order.text) for it (\(entry.note.text))"
            guard let (rule, place) = places[id] else {
                return Problem(
                    .warning,
                    at: configuration.place(of: ""),
                    "rules",
                    found: "no rule \(id), but \(what)",
                    use: "`portcullis rollout --config FILE \(id) file` to forget the order"
                )
            }
            let standing = standing(of: rule)
            let forget = "`portcullis rollout --config FILE \(id) file`"
            if rule.mode == .observe, standing.rule.mode == .enforce {
                return Problem(
                    .warning,
                    at: place,
                    "\(id).mode",
                    found: "observe, and \(what), which enforces it",
                    use: "\(forget) to observe, or enforce in the file"
                )
            }
            guard standing.keptText != nil, standing.source != .emergency else { return nil }
            let isEnding = if case .share = entry.order { true } else { false }
            return Problem(
                .warning,
                at: place,
                "\(id).mode",
                found: "\(rule.mode.rawValue), and \(what), which has no effect"
                    + (isEnding ? ", and ends with this file" : ""),
                use: rule.mode.verifies
                    ? "\(forget) to forget it" : "observe or enforce, or \(forget)"
            )
        }
    }
}
