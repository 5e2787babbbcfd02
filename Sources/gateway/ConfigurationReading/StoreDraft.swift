/// `store` as it was read.
struct StoreDraft {
    /// `sqlite`.
    let file: Located<String>?
    /// `postgresql`.
    let database: DatabaseSettings?
    let expireUnused: KeyAge?
    /// `must_exist`.
    let mustExist: Bool

    var place: StorePlace {
        if let file { return .sqlite(file: file.value) }
        return database.map { .postgresql($0) } ?? .none
    }

    init(_ reader: MappingReader, folder: String) {
        let keys = ["sqlite", "must_exist", "postgresql", "expire_unused"]
        guard let node = reader.node("store"),
            let inner = MappingReader(node, "store", keys: keys, log: reader.log)
        else {
            (file, database, expireUnused, mustExist) = (nil, nil, nil, false)
            return
        }
        let use = "sqlite: a file's path, or postgresql: { address: … }"
        if !inner.has("sqlite"), !inner.has("postgresql") {
            reader.log.error(inner.place, "store", found: "neither of them", use: use)
        }
        if inner.has("sqlite"), inner.has("postgresql") {
            reader.log.error(inner.place(of: "postgresql"), "store", found: "both", use: use)
        }
        file = inner.value("sqlite", use: "a file's path") { text in
            text.isEmpty || text.hasSuffix("/") ? nil : FilePath.joined(folder, text)
        }
        let exists = inner.flag("must_exist")
        mustExist = exists?.value ?? false
        if let exists, exists.value, file == nil {
            reader.log.error(
                exists.place,
                exists.keyPath,
                found: "it without sqlite",
                use: "sqlite"
            )
        }
        database = inner.node("postgresql").flatMap { DatabaseSettings($0, log: reader.log) }
        let age = inner.value("expire_unused", use: "off | 30d…3650d", words: ["off"]) {
            (text) -> KeyAge?? in
            text == "off" ? .some(KeyAge?.none) : KeyAge(text).map(Optional.some)
        }
        expireUnused = age?.value ?? nil
    }
}
