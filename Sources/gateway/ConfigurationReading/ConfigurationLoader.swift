import Cryptography
package import Parties
package import Rules

/// A configuration with its problems.
package struct LoadedConfiguration: Sendable {
    /// `nil` when there is an error among the problems.
    package let configuration: GatewayConfiguration?
    /// Errors and warnings, by file and line.
    package let problems: [Problem]
    /// The orders of operators about rollouts; empty until they were read.
    package var orders = RolloutOrders()

    /// The configuration with further problems, which were found later.
    package func adding(_ more: [Problem]) -> LoadedConfiguration {
        let problems = Problem.sorted(problems + more)
        let isRefused = problems.contains { $0.severity == .error }
        return LoadedConfiguration(
            configuration: isRefused ? nil : configuration,
            problems: problems,
            orders: orders
        )
    }

    package var errors: [Problem] { problems.filter { $0.severity == .error } }
    package var warnings: [Problem] { problems.filter { $0.severity == .warning } }
}

/// Reads a configuration and the files that it names.
package enum ConfigurationLoader {
    /// Loads a file. Relative paths in it are relative to its folder.
    ///
    /// Reads the file, the rule files and the certificates of test authorities; checks the files of
    /// TLS. It writes nothing, resolves no name and opens no socket.
    ///
    /// - parties: those whose proofs the file may name.
    package static func load(
        _ path: String,
        files: some ConfigurationFiles = DiskFiles(),
        parties: [any ProofParty.Type] = ProofParties.standard
    ) -> LoadedConfiguration {
        let log = ProblemLog()
        let configuration = read(path, files: files, parties: parties, log: log)
        return LoadedConfiguration(configuration: configuration, problems: [])
            .adding(log.problems)
    }

    /// Loads the settings for commands about keys: the store and the apps.
    ///
    /// It reads no files of rules and compares no rules. So a key can be revoked while rules are
    /// edited, and at once however many there are.
    package static func loadStore(
        _ path: String,
        files: some ConfigurationFiles = DiskFiles()
    ) -> LoadedStore {
        let log = ProblemLog()
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
        let log = ProblemLog()
        guard let stated = stated(path, files: files, log: log) else { return [] }
        let named = NamedFiles(folder: stated.folder, disk: files, log: log)
        return stated.settings.admin.map { $0.readingToken(named) }
    }

    private static func stated(
        _ path: String,
        files: some ConfigurationFiles,
        parties: [any ProofParty.Type] = ProofParties.standard,
        log: ProblemLog
    ) -> StatedConfiguration? {
        let use = "listen: …, origins: … and default: …"
        guard let root = node(path, use: use, files: files, log: log) else { return nil }
        return StatedConfiguration(
            root,
            folder: FilePath.folder(of: path),
            parties: parties,
            log: log
        )
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
        case .folder(let folder): rules = read(folder: folder, files: files, log: log)
        }
        var configuration = stated.validated(rules: rules, files: files, log: log)
        var text: [UInt8] = []
        for rule in rules + [stated.fallback].compactMap(\.self) { rule.reader.append(to: &text) }
        configuration?.rulesDigest = SHA256.digest(of: text).array
        return configuration
    }

    private static func node(
        _ path: String,
        use: String,
        files: some ConfigurationFiles,
        log: ProblemLog
    ) -> SourceNode? {
        do throws(FileFault) {
            let limit = SourceNode.Bounds.bytesMax
            let bytes = try files.contents(of: path, limit: limit)
            log.check(rules: path, FileMode(try files.permissions(of: path)))
            return SourceNode.read(bytes, file: path, use: use, log: log)
        } catch {
            let place = Problem.Place(file: path, line: 1)
            log.error(place, "", found: error.found, use: "a readable YAML file of at most 1MiB")
            return nil
        }
    }

    /// The rules of all files of a folder, in lexical order of their bytes.
    private static func read(
        folder: Located<String>,
        files: some ConfigurationFiles,
        log: ProblemLog
    ) -> [StatedRule] {
        let names: [String]
        do throws(FileFault) {
            names = try files.names(in: folder.value)
        } catch {
            let found = error == .missing ? "no such folder" : error.found
            let use = "a folder of *.yaml files, or a list of rules"
            log.error(folder, found: found, use: use)
            return []
        }
        let visible = names.filter { !$0.hasPrefix(".") }
        for name in visible.sorted() where !name.hasSuffix(".yaml") {
            guard [".yml", ".yaml"].contains(where: name.lowercased().hasSuffix) else { continue }
            // If it were ignored silently, its routes would stay open.
            log.error(folder, found: SourceNode.quoted(name), use: "the ending .yaml")
        }
        let ordered = visible.filter { $0.hasSuffix(".yaml") }
            .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        if ordered.isEmpty {
            log.warning(
                folder,
                found: "a folder without *.yaml files",
                use: "rules, or no rules key if the default is all you want"
            )
        }
        return ordered.flatMap { name -> [StatedRule] in
            let path = FilePath.joined(folder.value, name)
            let use = "rules (- id: …), or no such file"
            guard let root = node(path, use: use, files: files, log: log) else { return [] }
            guard case .list(let list) = root.content else {
                log.error(root.place, "", found: root.found, use: "a list of rules: - id: …")
                return []
            }
            return RuleSettings.all(list, at: "", log)
        }
    }
}

extension RolloutOrders {
    /// Orders that have no effect with a configuration.
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
            guard !rule.mode.verifies else { return nil }
            return Problem(
                .warning,
                at: place,
                "\(id).mode",
                found: "\(rule.mode.rawValue), and \(what), which has no effect",
                use: "observe or enforce, or `portcullis rollout --config FILE \(id) file`"
            )
        }
    }
}
