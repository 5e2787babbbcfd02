internal import Cryptography
package import DeviceKey
internal import Encodings
package import Signatures

// What is left of a deleted key: its mark, a code over its id under a secret of the store.
//
// A deletion has two steps. The first one sets the time of the deletion in the key's row, as a
// revocation sets its own, and all gateways learn of it by the key id. The second one, the erasure,
// puts the mark in the place of the id and removes the rest: public key, counters, app, times. A
// key whose mark is stored can't be enrolled or imported again. From a mark alone no id can be
// found. Who has the store, and so its secret, can test an id that they know already.
//
// A gateway that reads the row only after the erasure finds the key by the number of its row, and
// compares marks.
//
// Marks of another store, which come with a copy or an import, are under that store's secret, so
// the secret comes with them. A store then looks for the marks of a key under each of its secrets.

/// A secret under which the ids of erased keys are stored.
package struct ErasureSecret: Hashable, Sendable {
    package static let byteCount = 32
    /// The most secrets of a store: its own, and those of the stores whose marks it has.
    package static let countMax = 16
    /// The name of a store's own secret; those of other stores have it as their prefix.
    package static let ownName = "erasure"

    package let bytes: [UInt8]

    /// `nil` unless there are exactly ``byteCount``.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = Array(bytes)
    }

    private init(drawn bytes: [UInt8]) { self.bytes = bytes }

    /// A new one.
    package static func drawn() -> ErasureSecret {
        ErasureSecret(drawn: RandomBytes.make(count: byteCount))
    }

    /// The name in a store that is not its own.
    package var foreignName: String {
        "\(Self.ownName) \(Hex.text(SHA256.digest(of: bytes).array.prefix(8)))"
    }

    /// The mark of a key. It has the form of a key id, since it takes the id's place in the row.
    package func mark(of keyID: KeyID) -> KeyID {
        KeyID(HMACSHA256.Key(bytes.span).code(keyID.digest.bytes.span))
    }
}

/// The secrets of a store, its own one first.
package struct ErasureSecrets: Equatable, Sendable {
    package let named: [(name: String, secret: ErasureSecret)]

    package init(_ named: [(name: String, secret: ErasureSecret)]) {
        self.named = named.sorted { $0.name < $1.name }
    }

    package var isEmpty: Bool { named.isEmpty }

    /// The marks that a key may have here, with the names of their secrets.
    package func marks(of keyID: KeyID) -> [(name: String, mark: KeyID)] {
        named.map { ($0.name, $0.secret.mark(of: keyID)) }
    }

    /// The name of a secret that the store has.
    package func name(of secret: ErasureSecret) -> String? {
        named.first { $0.secret == secret }?.name
    }

    /// Whether the store has room for another secret.
    package var isFull: Bool { named.count >= ErasureSecret.countMax }

    /// Why the marks of a further store are not taken.
    package static let full = JournalError(
        .unusable,
        "has the marks of deleted keys of \(ErasureSecret.countMax - 1) other stores, and takes "
            + "none of a further one",
        next: "leave out the lines that have the member erased, or copy into another store"
    )

    package static func == (left: Self, right: Self) -> Bool {
        left.named.elementsEqual(right.named) { $0 == $1 }
    }
}

extension KeyRecord {
    /// Whether only its mark is left.
    package var isErased: Bool {
        if case .erased = status { true } else { false }
    }

    /// What is left of an erased key.
    package static func erased(
        _ mark: KeyID,
        under secret: ErasureSecret,
        at second: Int64
    ) -> KeyRecord {
        KeyRecord(
            keyID: mark,
            appID: "",
            environment: .production,
            publicKey: .ofErasedKeys,
            enrolledAt: nil,
            status: .erased(at: second, under: secret),
            source: .enrolled
        )
    }
}

extension P256PublicKey {
    /// The public key in the rows of erased keys, since each row has a point of the curve: its
    /// generator (SEC 2, section 2.4.2).
    package static let ofErasedKeys: P256PublicKey = {
        let generator: [UInt8] = [
            0x6B, 0x17, 0xD1, 0xF2, 0xE1, 0x2C, 0x42, 0x47, 0xF8, 0xBC, 0xE6, 0xE5, 0x63, 0xA4,
            0x40, 0xF2, 0x77, 0x03, 0x7D, 0x81, 0x2D, 0xEB, 0x33, 0xA0, 0xF4, 0xA1, 0x39, 0x45,
            0xD8, 0x98, 0xC2, 0x96, 0x4F, 0xE3, 0x42, 0xE2, 0xFE, 0x1A, 0x7F, 0x9B, 0x8E, 0xE7,
            0xEB, 0x4A, 0x7C, 0x0F, 0x9E, 0x16, 0x2B, 0xCE, 0x33, 0x57, 0x6B, 0x31, 0x5E, 0xCE,
            0xCB, 0xB6, 0x40, 0x68, 0x37, 0xBF, 0x51, 0xF5,
        ]
        guard let key = P256PublicKey(raw: generator.span) else {
            preconditionFailure("P256PublicKey: the generator is not on the curve")
        }
        return key
    }()
}

extension KeyRow {
    /// Whether this row is of the erased key that had this id.
    func isErasure(of keyID: KeyID) -> Bool { erasure?.mark(of: keyID) == self.keyID }

    /// The row of a key that was asked for by its id, of which the store may have only the mark.
    package func asked(by keyID: KeyID) -> KeyRow {
        guard erasure != nil else { return self }
        var row = self
        (row.keyID, row.erasure, row.context, row.anchor) = (keyID, nil, nil, .held)
        return row
    }
}

/// The rows of keys that others have erased lately. A row of such a key that was read before that,
/// for a request, may still come.
struct ErasedRows {
    /// The least number of rows that are kept. A row comes a few seconds late at most.
    private static let count = 4_096

    private var lately: [Int64: KeyRow] = [:]
    private var before: [Int64: KeyRow] = [:]

    mutating func note(_ rows: some Collection<KeyRow>) {
        for row in rows {
            if lately.count >= Self.count { (lately, before) = ([:], lately) }
            lately[row.row] = row
        }
    }

    /// Whether a row is of a key that was erased after the row was read.
    func has(_ row: KeyRow) -> Bool {
        (lately[row.row] ?? before[row.row])?.isErasure(of: row.keyID) ?? false
    }
}
