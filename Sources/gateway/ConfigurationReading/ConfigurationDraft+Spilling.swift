import Rules

// Where held content goes, and whether it fits.
extension ConfigurationDraft {
    /// Where content may be put when a file doesn't say.
    private static let spillFolders = ["/tmp", "/var/tmp", "/dev/shm"]

    /// Content within a rule's limit must find room when nothing else is held, or its client would
    /// be told to try again for ever.
    func validateHeld(_ rules: some Sequence<(RuleDraft, Rule)>) {
        let bounds = [("held_disk", limits.heldDisk), ("address_held", limits.addressHeld)]
        for (draft, rule) in rules {
            guard case .held(let limit, let memory) = rule.body else { continue }
            for (key, most) in bounds where limit > most && (key != "held_disk" || memory < limit) {
                let stated = draft.body?.value.limit
                reader.log.error(
                    stated?.place ?? draft.reader.place,
                    stated?.keyPath ?? draft.reader.path("body"),
                    found: "a limit of \(limit.text) with limits.\(key) of \(most.text)",
                    use: "a limit of at most \(most.text), or a larger limits.\(key)"
                )
            }
        }
    }

    /// A reset tells an origin that a request is incomplete, and a Unix socket has no reset.
    func validateStreamed(_ rules: some Sequence<(RuleDraft, Rule)>) {
        for (draft, rule) in rules {
            guard case .streamed = rule.body, let digest = draft.body?.value.digest,
                let origin = rule.origin, origins.indices.contains(origin.rawValue)
            else { continue }
            let servers = origins[origin.rawValue].servers.map(\.value.address)
            guard let socket = servers.first(where: \.isUnix) else { continue }
            reader.log.warning(
                digest.place,
                digest.keyPath,
                found: "streamed to \(socket.text), where a broken request ends without a reset",
                use: "held, or servers that are reached by TCP"
            )
        }
    }

    /// The folder for held content: the stated one, or one that is not on the store's file system,
    /// where it could leave the store no room.
    func chosenSpillFolder(_ rules: RuleSet, files: some ConfigurationFiles) -> String {
        let holds = rules.rules.contains { rule in
            if case .held(let limit, let memory) = rule.body { memory < limit } else { false }
        }
        var storeDevice: UInt64?
        let storeFile = store.file
        if let storeFile {
            storeDevice = try? files.device(of: FilePath.folder(of: storeFile.value))
        }
        func isApart(_ folder: String) -> Bool {
            guard let storeDevice, let device = try? files.device(of: folder) else { return false }
            return device != storeDevice
        }
        let chosen =
            spillFolder?.value ?? Self.spillFolders.first(where: isApart) ?? Self.spillFolders[0]
        if holds, let storeFile, let storeDevice,
            (try? files.device(of: chosen)) == storeDevice
        {
            reader.log.warning(
                spillFolder?.place ?? storeFile.place,
                "spill_folder",
                found:
                    "\(chosen) on the store's file system, where held content can leave it no room",
                use: "a folder on another file system, or a limits.held_disk that leaves room"
            )
        }
        return chosen
    }
}
