/// Who may import whom.
struct ImportCheck {
    let manifest: Manifest

    func findings(in source: SwiftSource) -> [Finding] {
        source.tokens.indices.flatMap { index -> [Finding] in
            guard source.reads(index, "import"), isStatement(index, in: source) else { return [] }
            return findings(in: source, importAt: index)
        }
    }

    private func isStatement(_ index: Int, in source: SwiftSource) -> Bool {
        source.token(index, 1).kind == .word
            && source.token(index, 1).line == source.token(index).line
    }

    private func findings(in source: SwiftSource, importAt index: Int) -> [Finding] {
        let kinds = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
        let isOfOneName = kinds.contains(source.token(index, 1).text)
        let name = source.token(index, isOfOneName ? 2 : 1).text
        let module = Held.standIns[name] ?? name
        let line = source.token(index).line
        var texts = [undeclared(module, in: source)]
        if !source.isTest {
            texts.append(impure(module, in: source))
            texts.append(foreign(module, in: source))
            texts.append(outside(module, in: source))
            texts.append(owned(module, in: source))
            texts.append(exposed(module, in: source, importAt: index))
        }
        return texts.compactMap { $0 }.map { source.finding(line, $0) }
    }

    private func undeclared(_ module: String, in source: SwiftSource) -> String? {
        guard let target = manifest[source.target] else {
            return "\(source.target) is no target of Package.swift; add its line there"
        }
        if Held.toolchainModules.contains(module) || target.uses.contains(module) { return nil }
        if target.kind == .tests, module == "Testing" { return nil }
        return "import of \(module), which \(target.name) does not declare; "
            + "add it to the target's line in Package.swift or do without"
    }

    private func impure(_ module: String, in source: SwiftSource) -> String? {
        guard Held.pureTargets.contains(source.target), Held.impureModules.contains(module) else {
            return nil
        }
        let isFoundation = module == "Foundation" || module == "FoundationEssentials"
        if isFoundation, Held.foundationFiles[source.path] != nil { return nil }
        if Held.runningFiles[source.path] != nil { return nil }
        return "\(source.target) is pure and imports \(module); take what it gives as a parameter"
    }

    /// What a pure folder does not import can't be reached in it either: a member needs its import.
    private func foreign(_ module: String, in source: SwiftSource) -> String? {
        guard let folder = Held.pureFolders.first(where: { source.path.hasPrefix($0.key) }),
            !folder.value.contains(module)
        else { return nil }
        return
            "\(folder.key) is pure and may not import \(module); take what it gives as a parameter"
    }

    /// What could be a target of its own imports only what that target would.
    private func outside(_ module: String, in source: SwiftSource) -> String? {
        guard let folder = Held.closedFolders.first(where: { source.path.hasPrefix($0.key) }),
            !folder.value.contains(module)
        else { return nil }
        return "\(folder.key) does without \(module); keep what uses it in another folder"
    }

    private func owned(_ module: String, in source: SwiftSource) -> String? {
        guard let owners = Held.owners[module], !owners.contains(source.target),
            !owners.contains(where: { $0.hasSuffix("/") && source.path.hasPrefix($0) })
        else { return nil }
        let names = owners.sorted().joined(separator: " and ")
        return "only \(names) may import \(module); ask there for what you need"
    }

    /// An internal import can't appear in a signature that other targets see: the compiler watches.
    private func exposed(_ module: String, in source: SwiftSource, importAt index: Int) -> String? {
        let access = source.token(index, -1)
        guard module == "COpenSSL", access.line == source.token(index).line,
            ["public", "package"].contains(access.text)
        else { return nil }
        return "C types stay inside: write `internal import \(module)`"
    }
}

extension ImportCheck {
    /// What `portcullis` would link and must not, by the manifest.
    func shippedFindings(program: String) -> [Finding] {
        Held.neverShipped.intersection(manifest.closure(of: program)).sorted().map {
            Finding(
                path: "Package.swift",
                line: 0,
                text: "\(program) uses \($0), directly or not; it plays devices and never ships"
            )
        }
    }
}
