/// Where keys are kept: `store`.
package enum StorePlace: Hashable, Sendable {
    /// Nothing is verified, so there is nothing to keep.
    case none
    /// `store.sqlite`: the database's file.
    case sqlite(file: String)
    /// `store.postgresql`: a database that several gateways share.
    case postgresql(DatabaseSettings)

    /// The database's file; `nil` where the store is none.
    package var file: String? {
        if case .sqlite(let file) = self { file } else { nil }
    }

    /// For messages. It has no secret in it.
    package var name: String {
        switch self {
        case .none: "memory"
        case .sqlite(let file): file
        case .postgresql(let database): database.address
        }
    }
}
