/// A folder of files that stands at a key in the place of its value: `rules`, `apps`, `origins`.
struct FileFolder {
    /// What its files have.
    enum Content: String {
        case rules, apps, origins

        /// What may stand at the key, in the words of problems.
        var use: String {
            switch self {
            case .rules: "a folder of rule files, or a list of rules"
            case .apps: "a folder of files with apps, or a list of apps"
            case .origins: "a folder of files with origins, or a mapping of origins"
            }
        }

        /// What a schema says of the key's text.
        var text: ReadingRecord.Text { ReadingRecord.Text(use: use).takingVariables }

        fileprivate var folderUse: String {
            switch self {
            case .rules: "a folder of *.yaml files, or a list of rules"
            case .apps: "a folder of *.yaml files, or a list of apps"
            case .origins: "a folder of *.yaml files, or a mapping of origins"
            }
        }

        fileprivate var emptyUse: String {
            switch self {
            case .rules: "rules, or no rules key if the default is all you want"
            case .apps: "apps, or no apps key if no rule verifies"
            case .origins: "origins"
            }
        }

        fileprivate var fileUse: String {
            switch self {
            case .rules: "rules (- id: …), or no such file"
            case .apps: "apps (- id: …), or no such file"
            case .origins: "origins (name: …), or no such file"
            }
        }

        /// The form of a file.
        var form: String {
            switch self {
            case .rules: "a list of rules: - id: …"
            case .apps: "a list of apps: - id: …"
            case .origins: "a mapping of origins: name: { servers: [10.0.0.5:8080] }"
            }
        }
    }

    let folder: Located<String>
    let content: Content
    let files: any ConfigurationFiles
    let log: ProblemLog

    /// What its files have, in lexical order of the bytes of their names; without those that can't
    /// be read, which is a problem.
    func roots() -> [SourceNode] {
        let names: [String]
        do throws(FileFault) {
            names = try files.names(in: folder.value)
        } catch {
            let found = error == .missing ? "no such folder" : error.found
            log.error(folder, found: found, use: content.folderUse)
            return []
        }
        if let bits = files.permissions(ofFolder: folder.value) {
            log.check(folder: folder, FileMode(bits))
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
            let found = "a folder without *.yaml files"
            if content == .rules {
                log.warning(folder, found: found, use: content.emptyUse)
            } else {
                log.error(folder, found: found, use: content.emptyUse)
            }
        }
        return ordered.compactMap { name in
            let path = FilePath.joined(folder.value, name)
            return SourceNode.load(path, use: content.fileUse, files: files, log: log)
        }
    }

    /// The elements of all files, of which each is a list.
    func elements() -> [SourceNode] {
        roots().flatMap { root -> [SourceNode] in
            if case .list(let list) = root.content { return list }
            log.error(root.place, "", found: root.found, use: content.form)
            return []
        }
    }

    /// The members of all files, of which each is a mapping. A name that is in two files is a
    /// problem.
    func members() -> [SourceNode.Member] {
        var seen: [String: Problem.Place] = [:]
        return roots().flatMap { root -> [SourceNode.Member] in
            guard case .mapping(let members) = root.content else {
                log.error(root.place, "", found: root.found, use: content.form)
                return []
            }
            return members.filter { member in
                let keyPath = "\(content.rawValue).\(member.key)"
                let isFirst = seen[member.key] == nil
                let name = Located(value: member.key, place: member.place, keyPath: keyPath)
                log.claim(name, in: &seen, use: "another name")
                return isFirst
            }
        }
    }
}

extension SourceNode {
    /// Reads a file of a configuration; `nil`, with a problem, when it can't be read.
    static func load(
        _ path: String,
        use: String,
        files: some ConfigurationFiles,
        log: ProblemLog
    ) -> SourceNode? {
        do throws(FileFault) {
            let bytes = try files.contents(of: path, limit: Bounds.bytesMax)
            log.check(rules: path, FileMode(try files.permissions(of: path)))
            return read(bytes, file: path, use: use, log: log)
        } catch {
            let place = Problem.Place(file: path, line: 1)
            log.error(place, "", found: error.found, use: "a readable YAML file of at most 1MiB")
            return nil
        }
    }

    /// The root of a configuration with what is in the folders at `apps` and `origins`, each piece
    /// with its own place.
    ///
    /// - folder: that of the configuration.
    func including(
        from folder: String,
        _ files: some ConfigurationFiles,
        _ log: ProblemLog
    ) -> SourceNode {
        guard case .mapping(let members) = content else { return self }
        let whole = members.map { member -> Member in
            guard let key = FileFolder.Content(rawValue: member.key), key != .rules,
                case .text(let text) = member.value.content
            else { return member }
            let stated = Located(value: text, place: member.value.place, keyPath: member.key)
            let path = log.text(of: stated, takesVariables: true) { !$0.isEmpty }
            guard let path else { return member }
            guard !path.isEmpty else {
                log.error(stated, found: member.value.found, use: key.use)
                return member
            }
            let named = stated.map { _ in FilePath.joined(folder, path) }
            let files = FileFolder(folder: named, content: key, files: files, log: log)
            let (elements, members) =
                key == .apps ? (files.elements(), []) : ([], files.members())
            // That there is nothing was reported.
            guard !elements.isEmpty || !members.isEmpty else { return member }
            let pieces = key == .apps ? Content.list(elements) : .mapping(members)
            let value = SourceNode(place: member.value.place, content: pieces)
            return Member(key: member.key, place: member.place, value: value)
        }
        return SourceNode(place: place, content: .mapping(whole))
    }
}
