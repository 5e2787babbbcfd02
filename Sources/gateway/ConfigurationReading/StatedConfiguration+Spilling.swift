import Proxy
import Rules

// The folder of held content, and whether the content fits.
extension StatedConfiguration {
    /// The folders for held content when the file names none.
    private static let spillFolders = ["/tmp", "/var/tmp", "/dev/shm"]

    /// Content within a rule's limit must find room when no other content is held. Otherwise its
    /// client would be asked to retry for ever.
    func validateHeld(
        _ rules: some Sequence<(StatedRule, Rule)>,
        _ limits: ProxyLimits,
        in folder: String
    ) {
        let total =
            limits.filesAreMemory
            ? ("held_memory", limits.heldMemoryMax, " for \(folder) too, which is in memory")
            : ("held_disk", limits.heldDiskMax, "")
        var shares = [("address_held", limits.addressHeldMax, "")]
        if limits.keyHeldMax < limits.addressHeldMax {
            shares.append(("key_held", limits.keyHeldMax, ""))
        }
        for (stated, rule) in rules {
            guard case .held(let limit, let memory) = rule.body else { continue }
            for (bound, bytes, note) in (memory < limit ? [total] : []) + shares {
                let most = ByteCount(bytes)
                guard limit > most else { continue }
                let key = stated.value.body.limit == nil ? "body" : "body.limit"
                let disk = note.isEmpty ? "" : ", or a spill_folder on a disk"
                reader.log.error(
                    reader.log.located(stated.reader.path(key), limit),
                    found: "a limit of \(limit.text) with limits.\(bound) of \(most.text)\(note)",
                    use: "a limit of at most \(most.text), or a larger limits.\(bound)\(disk)"
                )
            }
        }
    }

    /// The limits, if files of the folder may be in memory.
    func limits(spillingTo folder: String, _ rules: RuleSet, files: some ConfigurationFiles)
        -> ProxyLimits
    {
        var limits = settings.limits
        guard files.isInMemory(folder) else { return limits }
        let held = rules.rules.compactMap { rule in
            if case .held(let limit, _) = rule.body { limit } else { nil }
        }
        limits.countFilesAsMemory(largest: held.max() ?? ByteCount(0)) { key in
            reader.log.places["limits.\(key)"] != nil
        }
        return limits
    }

    /// A reset shows an origin that a request is incomplete, and a Unix socket has no reset. A gRPC
    /// server runs a call when its message is whole, which is before the request's end.
    func validateStreamed(_ rules: some Sequence<(StatedRule, Rule)>) {
        for (stated, rule) in rules {
            let path = stated.reader.path("body")
            let isWord = reader.log.places["\(path).digest"] == nil
            let digest = reader.log.located(isWord ? path : "\(path).digest", "")
            guard case .streamed = rule.body,
                let origin = rule.origin, settings.origins.indices.contains(origin.rawValue)
            else { continue }
            let target = settings.origins[origin.rawValue]
            if target.http2 == .on {
                reader.log.error(
                    digest,
                    found: "streamed with http2: on, where a gRPC server runs a call "
                        + "before its end",
                    use: "held, or an origin without http2"
                )
                continue
            }
            guard let socket = target.addresses.first(where: \.isUnix) else { continue }
            reader.log.warning(
                digest,
                found: "streamed to \(socket.text), where a broken request ends without a reset",
                use: "held, or servers that are reached by TCP"
            )
        }
    }

    /// The file system of the store.
    private func storeDevice(_ files: some ConfigurationFiles) -> UInt64? {
        settings.store.file.flatMap { try? files.device(of: FilePath.folder(of: $0)) }
    }

    /// The folder for held content: the stated one, or one that is not on the store's file system,
    /// where it could leave the store no room. A disk is preferred to memory. A container may have
    /// its /tmp in memory, and a root that is read-only with /var/tmp in it.
    func chosenSpillFolder(files: some ConfigurationFiles) -> String {
        let storeDevice = storeDevice(files)
        let apart = Self.spillFolders.filter { folder in
            guard let storeDevice, let device = try? files.device(of: folder) else { return false }
            return device != storeDevice && !files.isReadOnly(folder)
        }
        guard settings.spillFolder.isEmpty else { return settings.spillFolder }
        return apart.first { !files.isInMemory($0) } ?? apart.first ?? Self.spillFolders[0]
    }

    /// Held content should leave room for the store.
    func validate(spillFolder chosen: String, _ rules: RuleSet, files: some ConfigurationFiles) {
        if rules.spills, let storeDevice = storeDevice(files),
            (try? files.device(of: chosen)) == storeDevice
        {
            let key = reader.has("spill_folder") ? "spill_folder" : "store.sqlite"
            reader.log.warning(
                reader.log.places.place(of: key),
                "spill_folder",
                found:
                    "\(chosen) on the store's file system, where held content can leave it no room",
                use: "a folder on another file system, or a limits.held_disk that leaves room"
            )
        }
    }
}
