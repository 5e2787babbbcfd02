package import KeyStore
package import Rules

/// `store` as it was read.
struct StoreDraft {
    /// `sqlite`.
    let file: Located<String>?
    /// `postgresql`.
    let database: PostgreSQLSettings?
    let expireUnused: KeyAge?
    /// `must_exist`.
    let mustExist: Bool

    var place: StorePlace {
        if let file { return .sqlite(file: file.value) }
        return database.map { .postgresql($0) } ?? .none
    }

    init(_ reader: MappingReader, folder: String) {
        let keys = ["sqlite", "must_exist", "postgresql", "expire_unused"]
        guard let inner = reader.inner("store", keys: keys) else {
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
            reader.log.error(exists, found: "it without sqlite", use: "sqlite")
        }
        database = inner.node("postgresql").flatMap { PostgreSQLSettings($0, log: reader.log) }
        let age = inner.value("expire_unused", use: "off | 30d…3650d", words: ["off"]) {
            (text) -> KeyAge?? in
            text == "off" ? .some(KeyAge?.none) : KeyAge(text).map(Optional.some)
        }
        expireUnused = age?.value ?? nil
    }
}

/// The time for which an unused key is kept: whole days.
package struct KeyAge: Hashable, Sendable {
    /// Long enough for a device that was in a drawer, and to notice a mistake.
    package static let range = Duration.seconds(30 * 86_400)...Duration.seconds(3_650 * 86_400)
    package static let allowed = "use 30d…3650d"

    package let seconds: Int64

    package init?(_ text: String) {
        guard let duration = Duration(setting: text), Self.range.contains(duration) else {
            return nil
        }
        seconds = duration.components.seconds
    }
}

/// The store of keys: `store`.
package enum StorePlace: Hashable, Sendable {
    /// No store: nothing is verified, so there is nothing to keep.
    case none
    /// `store.sqlite`: the database's file.
    case sqlite(file: String)
    /// `store.postgresql`: a database that several gateways share.
    case postgresql(PostgreSQLSettings)

    /// The database's file; `nil` where the store has none.
    package var file: String? {
        if case .sqlite(let file) = self { file } else { nil }
    }

    /// For messages. It contains no secret.
    package var name: String {
        switch self {
        case .none: "memory"
        case .sqlite(let file): file
        case .postgresql(let database): database.address
        }
    }
}

/// The part of a configuration for commands about keys.
package struct StoreSettings: Sendable {
    package let store: StorePlace
    package let apps: [AppPolicy]
}

/// Store and apps of a configuration, with the file's problems.
package struct LoadedStore: Sendable {
    /// `nil` when there is an error among the problems.
    package let settings: StoreSettings?
    /// Errors and warnings, by file and line.
    package let problems: [Problem]
}
