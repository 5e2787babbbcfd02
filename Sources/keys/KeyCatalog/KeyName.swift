package import DeviceKey

/// How an operator names a key.
package enum KeyName: Hashable, Sendable {
    case id(KeyID)
    /// The short name that the log shows (``DeviceKey/KeyID/logName``), or its beginning.
    case short(String)

    /// Fewer digits of a short name are taken for a mistake.
    private static let digitsMin = 4
    private static let digitsMax = 12

    /// How a key may be named, for messages.
    package static let allowed = """
        use the key id (base64 of 32 bytes, 44 characters) or the short name that the log shows \
        (at least \(digitsMin) of its \(digitsMax) hexadecimal digits)
        """

    /// Reads a name; `nil` when it can be neither.
    package init?(_ text: String) {
        if let keyID = KeyID(base64: text) {
            self = .id(keyID)
            return
        }
        let isShort = text.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
        }
        guard isShort, (Self.digitsMin...Self.digitsMax).contains(text.utf8.count) else {
            return nil
        }
        self = .short(text)
    }
}

/// The key that a name stands for.
package enum KeyMatch: Equatable, Sendable {
    /// A short name stands for a stored key. A key id stands for itself, stored or not.
    case one(KeyID)
    case none
    /// The name is too short to tell these keys apart.
    case several([KeyID])
}

extension KeyArchive {
    /// Finds the key that an operator names.
    package func match(_ name: KeyName) throws(StoreProblem) -> KeyMatch {
        switch name {
        case .id(let keyID): return .one(keyID)
        case .short(let text):
            let found = try keyIDs(loggedAs: text)
            if found.count > 1 { return .several(found) }
            return found.first.map(KeyMatch.one) ?? .none
        }
    }
}
