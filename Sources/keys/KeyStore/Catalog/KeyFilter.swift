package import DeviceKey
package import Signatures

/// The keys that a command is about; `nil` properties don't matter.
package struct KeyFilter: Sendable {
    /// The treatment of deleted keys.
    package enum Deleted: Sendable {
        case excluded
        /// A copy also prevents them from being enrolled again.
        case included
    }

    package var deleted = Deleted.excluded
    package var appID: String?
    package var environment: KeyEnvironment?
    package var isRevoked: Bool?
    package var source: KeyRecord.Source?
    /// Not used since this second of Unix time, or never.
    package var unusedSince: Int64?
    /// The risk metric is known and at least this.
    package var riskMin: UInt32?

    package init() {}

    /// Whether it leaves out no key but deleted ones.
    var isWhole: Bool {
        appID == nil && environment == nil && isRevoked == nil && source == nil
            && unusedSince == nil && riskMin == nil
    }

    package func admits(_ record: KeyRecord) -> Bool {
        if record.status.standing == .deleted, deleted == .excluded { return false }
        if let appID, record.appID != appID { return false }
        if let environment, record.environment != environment { return false }
        if let isRevoked, (record.status != .active) != isRevoked { return false }
        if let source, record.source != source { return false }
        if let riskMin {
            let metric = record.receiptState.riskMetric ?? record.chain?.certificatesIssued
            guard let metric, metric >= riskMin else { return false }
        }
        return unusedSince.map { record.lastUsedAt ?? 0 < $0 } ?? true
    }
}

/// The facts of a stored key that never change.
package struct KeyIdentity: Equatable, Sendable {
    package var platform: DevicePlatform
    package var publicKey: P256PublicKey
    package var appID: String
    package var environment: KeyEnvironment
    package var standing: KeyStanding
    /// Whether only a mark of the key is left, so that nothing else here is known.
    package var isErased = false

    private static let wasDeleted = "the key was deleted, and stays so"

    /// Whether a record is of this key, whatever the state of both.
    package func isOf(_ record: KeyRecord) -> Bool {
        isErased
            || publicKey == record.publicKey && platform == record.platform
                && appID == record.appID && environment == record.environment
    }

    /// Why a record can't be of this stored key; `nil` when it can.
    package func difference(from record: KeyRecord) -> String? {
        if isErased { return Self.wasDeleted }
        if publicKey != record.publicKey { return "the key is stored with another public key" }
        if platform != record.platform {
            return "the key is stored for the platform \(platform.rawValue)"
        }
        if appID != record.appID { return "the key is stored for the app \(appID)" }
        guard environment == record.environment else {
            return "the key is stored for the environment \(environment.rawValue)"
        }
        guard standing != .deleted else { return Self.wasDeleted }
        return nil
    }
}

/// An operator's name for a key.
package enum KeyName: Hashable, Sendable {
    case id(KeyID)
    /// The short name in the log (``DeviceKey/KeyID/logName``), or its beginning.
    case short(String)

    /// Fewer digits of a short name are regarded as a mistake.
    private static let digitsMin = 4
    private static let digitsMax = 12

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

/// The key that a name matches.
package enum KeyMatch: Equatable, Sendable {
    /// The one stored key with a short name. A key id matches itself, stored or not.
    case one(KeyID)
    case none
    /// The name is too short to distinguish these keys.
    case several([KeyID])
}

extension KeyArchive {
    /// Finds the key that an operator names.
    ///
    /// - deleted: whether a short name may be that of a deleted key.
    package func match(
        _ name: KeyName,
        deleted: KeyFilter.Deleted = .excluded
    ) throws(StoreProblem) -> KeyMatch {
        switch name {
        case .id(let keyID): return .one(keyID)
        case .short(let text):
            let found = try keyIDs(loggedAs: text, deleted: deleted)
            if found.count > 1 { return .several(found) }
            return found.first.map(KeyMatch.one) ?? .none
        }
    }
}
