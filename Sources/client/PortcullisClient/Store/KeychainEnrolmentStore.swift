#if canImport(Security)
    import Crypto
    public import Foundation
    import Security

    /// A store in the Keychain, on this device only: the item goes into no backup that another
    /// device can read.
    ///
    /// The Keychain survives when an app is deleted, its App Attest keys don't. So the record
    /// carries a mark of the install, which is also kept in a file of the app. Where they differ,
    /// the record is from an earlier install and counts as none.
    ///
    /// Each gateway of an app has an item of its own, whose account is the origin of its endpoints.
    /// An App Clip or extension shares the key when it is given the same ``KeychainSharing``.
    ///
    /// Before the device was unlocked for the first time after its start, items can't be read. The
    /// store then throws, requests go without proof, and no key is made.
    public struct KeychainEnrolmentStore: EnrolmentStore {
        /// A status of the Keychain that is neither success nor "no such item".
        public struct Failure: LocalizedError, Hashable, Sendable {
            /// The `OSStatus` that Security returned.
            public let status: Int32

            /// A sentence for a log or a developer.
            public var errorDescription: String? {
                "The Keychain can't be read or written now: OSStatus \(status)."
            }
        }

        private let accessGroup: String?
        private let container: String?
        /// Whose record it is; `nil` where the store is used without a session.
        private let gateway: RecordName?

        private static let service = "portcullis.enrolment"
        /// Without a group, the Keychain finds items of every group that the process may use, those
        /// of extensions included. So items of one process are named after it.
        private static let ownService =
            "\(service).\(Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName)"

        /// A store for the records of an app's gateways.
        ///
        /// - Parameter sharing: which processes share the key.
        public init(sharing: KeychainSharing = .none) {
            (accessGroup, container, gateway) = (sharing.accessGroup, sharing.container, nil)
        }

        private init(_ store: Self, _ gateway: RecordName) {
            (accessGroup, container, self.gateway) = (store.accessGroup, store.container, gateway)
        }

        /// The store for one gateway's record.
        public func scoped(to endpoints: URL) -> any EnrolmentStore {
            RecordName(endpoints).map { Self(self, $0) } ?? self
        }

        /// What is kept, unless it is from an earlier install.
        public func read() async throws -> Data? { try await record.read() }

        /// Keeps a new record if the item holds the expected one.
        public func replace(_ expected: Data?, with record: Data?) async throws -> Bool {
            try await self.record.replace(expected, with: record)
        }

        private var record: MarkedRecord {
            let service = accessGroup == nil ? Self.ownService : Self.service
            let account = gateway?.text ?? "gateway"
            return MarkedRecord(
                items: KeychainItems(),
                item: SecretItem(service: service, account: account, group: accessGroup),
                mark: { [container] in try await Self.installMark(container) }
            )
        }

        private static func installMark(_ container: String?) async throws -> String {
            var folder = URL(filePath: NSHomeDirectory(), directoryHint: .isDirectory)
            var name = "portcullis.install"
            if let container {
                let manager = FileManager.default
                let shared = manager.containerURL(forSecurityApplicationGroupIdentifier: container)
                guard let shared else { throw Failure(status: errSecParam) }
                folder = shared
            } else if let identifier = Bundle.main.bundleIdentifier {
                // Apps of a Mac without a sandbox have one home.
                name += "." + identifier
            }
            #if os(tvOS)
                // All that can be written there. When the system empties it, a key is lost.
                folder.append(path: "Library/Caches")
            #else
                folder.append(path: "Library/Application Support")
            #endif
            return try await InstallMark(file: folder.appending(path: name)).text()
        }
    }

    /// The Keychain's items.
    private struct KeychainItems: SecretItems {
        func value(of item: SecretItem) throws -> Data? {
            var query = identity(item)
            query[kSecReturnData] = true
            query[kSecMatchLimit] = kSecMatchLimitOne
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &found)
            switch status {
            case errSecSuccess:
                // An item without a value is none of ours, and no reason to make another key.
                guard let value = found as? Data else {
                    throw KeychainEnrolmentStore.Failure(status: errSecParam)
                }
                return value
            case errSecItemNotFound: return nil
            // errSecInteractionNotAllowed among them: before the first unlock.
            default: throw KeychainEnrolmentStore.Failure(status: status)
            }
        }

        func add(_ value: Data, as item: SecretItem) throws -> Bool {
            var attributes = identity(item, holding: value)
            attributes[kSecValueData] = value
            // Readable for a background launch, once the device was unlocked after its start.
            attributes[kSecAttrAccessible] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            let status = SecItemAdd(attributes as CFDictionary, nil)
            switch status {
            case errSecSuccess: return true
            case errSecDuplicateItem: return false
            default: throw KeychainEnrolmentStore.Failure(status: status)
            }
        }

        func update(_ item: SecretItem, holding value: Data, to new: Data) throws -> Bool {
            let changes: [CFString: Any] = [kSecValueData: new, kSecAttrGeneric: Self.digest(new)]
            let query = identity(item, holding: value)
            return try isDone(SecItemUpdate(query as CFDictionary, changes as CFDictionary))
        }

        func delete(_ item: SecretItem, holding value: Data) throws -> Bool {
            try isDone(SecItemDelete(identity(item, holding: value) as CFDictionary))
        }

        private func isDone(_ status: OSStatus) throws -> Bool {
            switch status {
            case errSecSuccess: return true
            case errSecItemNotFound: return false
            default: throw KeychainEnrolmentStore.Failure(status: status)
            }
        }

        private func identity(_ item: SecretItem) -> [CFString: Any] {
            var query: [CFString: Any] = [
                kSecClass: kSecClassGenericPassword,
                kSecAttrService: item.service,
                kSecAttrAccount: item.account,
                // The same Keychain on a Mac as on an iPhone.
                kSecUseDataProtectionKeychain: true,
            ]
            if let group = item.group { query[kSecAttrAccessGroup] = group }
            return query
        }

        /// The item when it still holds this value. The attribute holds the value's digest, so that
        /// the Keychain compares and changes in one step.
        private func identity(_ item: SecretItem, holding value: Data) -> [CFString: Any] {
            var query = identity(item)
            query[kSecAttrGeneric] = Self.digest(value)
            return query
        }

        private static func digest(_ value: Data) -> Data { Data(SHA256.hash(data: value)) }
    }
#endif

/// Which processes share the key whose record a `KeychainEnrolmentStore` holds.
///
/// The record's item and the mark of the install have to be reached by the same processes: with one
/// of them shared and the other not, two processes would take each other's record for that of an
/// earlier install, and overwrite it. So both come from one value.
///
/// May grow: a `switch` over it has an `@unknown default`.
#if hasAttribute(nonexhaustive)
    @nonexhaustive(warn)
#endif
public enum KeychainSharing: Hashable, Sendable {
    /// This app or extension alone.
    case none
    /// All apps and extensions of an app group: `group.com.example.shop`. On iPhones an app group
    /// is a Keychain group too.
    case appGroup(String)
    /// The item is in a Keychain group, `ABCDE12345.com.example.shop`, and the mark is in the
    /// container of an app group of the same apps and extensions.
    case keychainGroup(String, appGroup: String)

    /// The access group of the item; `nil` for that of the app.
    var accessGroup: String? {
        switch self {
        case .none: nil
        case .appGroup(let group), .keychainGroup(let group, _): group
        }
    }

    /// The app group that has the mark; `nil` for the app's own container.
    var container: String? {
        switch self {
        case .none: nil
        case .appGroup(let group), .keychainGroup(_, let group): group
        }
    }
}
