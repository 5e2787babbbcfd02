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
    /// An App Clip or extension shares the key when it uses the same access group and the same
    /// suite.
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

        private let service: String
        private let account: String
        private let accessGroup: String?
        private let suite: String?

        private static let separator = UInt8(ascii: "\n")

        /// A store in one item of the Keychain.
        ///
        /// - Parameters:
        ///   - account: the item's account. Give each gateway of an app its own.
        ///   - accessGroup: a Keychain group or app group that processes share; `nil` for the app
        ///     alone.
        ///   - suite: the app group whose container holds the mark; `nil` for the app's own.
        public init(
            account: String = "gateway",
            accessGroup: String? = nil,
            suite: String? = nil
        ) {
            service = "portcullis.enrolment"
            self.account = account
            self.accessGroup = accessGroup
            self.suite = suite
        }

        /// What is kept, unless it is from an earlier install.
        public func read() async throws -> Data? {
            guard let stored = try item() else { return nil }
            return Self.record(in: stored, of: try await installMark())
        }

        /// Keeps a new record if the item holds the expected one.
        public func replace(_ expected: Data?, with record: Data?) async throws -> Bool {
            let stored = try item()
            let mark = try await installMark()
            guard stored.flatMap({ Self.record(in: $0, of: mark) }) == expected else {
                return false
            }
            switch (stored, record) {
            case (nil, nil): return true
            case (nil, let record?): return try add(Self.value(record, mark))
            case (let stored?, nil): return try delete(stored)
            case (let stored?, let record?): return try update(stored, to: Self.value(record, mark))
            }
        }

        // MARK: The item

        private var identity: [CFString: Any] {
            var query: [CFString: Any] = [
                kSecClass: kSecClassGenericPassword,
                kSecAttrService: service,
                kSecAttrAccount: account,
                // The same Keychain on a Mac as on an iPhone.
                kSecUseDataProtectionKeychain: true,
            ]
            if let accessGroup { query[kSecAttrAccessGroup] = accessGroup }
            return query
        }

        /// The item when it still holds this value. The attribute holds the value's digest, so that
        /// the Keychain compares and changes in one step.
        private func identity(holding value: Data) -> [CFString: Any] {
            var query = identity
            query[kSecAttrGeneric] = Self.digest(value)
            return query
        }

        private func item() throws -> Data? {
            var query = identity
            query[kSecReturnData] = true
            query[kSecMatchLimit] = kSecMatchLimitOne
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &found)
            switch status {
            case errSecSuccess: return found as? Data
            case errSecItemNotFound: return nil
            default: throw Failure(status: status)
            }
        }

        private func add(_ value: Data) throws -> Bool {
            var item = identity(holding: value)
            item[kSecValueData] = value
            // Readable for a background launch, once the device was unlocked after its start.
            item[kSecAttrAccessible] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            let status = SecItemAdd(item as CFDictionary, nil)
            switch status {
            case errSecSuccess: return true
            case errSecDuplicateItem: return false
            default: throw Failure(status: status)
            }
        }

        private func update(_ stored: Data, to value: Data) throws -> Bool {
            let changes: [CFString: Any] = [
                kSecValueData: value,
                kSecAttrGeneric: Self.digest(value),
            ]
            let query = identity(holding: stored)
            return try isDone(SecItemUpdate(query as CFDictionary, changes as CFDictionary))
        }

        private func delete(_ stored: Data) throws -> Bool {
            try isDone(SecItemDelete(identity(holding: stored) as CFDictionary))
        }

        private func isDone(_ status: OSStatus) throws -> Bool {
            switch status {
            case errSecSuccess: return true
            case errSecItemNotFound: return false
            default: throw Failure(status: status)
            }
        }

        // MARK: The mark of the install

        private func installMark() async throws -> String {
            var folder = URL(filePath: NSHomeDirectory(), directoryHint: .isDirectory)
            var name = "portcullis.install"
            if let suite {
                let manager = FileManager.default
                guard
                    let shared = manager.containerURL(forSecurityApplicationGroupIdentifier: suite)
                else { throw Failure(status: errSecParam) }
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

        /// The mark, a line feed, the record.
        private static func value(_ record: Data, _ mark: String) -> Data {
            Data(mark.utf8) + [separator] + record
        }

        private static func record(in value: Data, of mark: String) -> Data? {
            guard let end = value.firstIndex(of: separator),
                value[..<end].elementsEqual(mark.utf8)
            else { return nil }
            return Data(value[value.index(after: end)...])
        }

        private static func digest(_ value: Data) -> Data { Data(SHA256.hash(data: value)) }
    }
#endif
