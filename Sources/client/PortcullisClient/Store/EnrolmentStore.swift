public import Foundation

/// Where a small record about this install's key is kept: a few kilobytes, opaque bytes.
///
/// Processes that share a key (an app and its extensions) share a store. What makes that safe is
/// ``replace(_:with:)``, which must be atomic across all of them.
public protocol EnrolmentStore: Sendable {
    /// What is kept; `nil` when there is nothing, or when it is from an earlier install.
    ///
    /// - Returns: the bytes that were kept last.
    /// - Throws: when the store can't be read now, as a Keychain before the first unlock. Requests
    ///   then go without proof, and no key is made.
    func read() async throws -> Data?

    /// Keeps a new record if the store holds what the caller believes that it holds.
    ///
    /// - Parameters:
    ///   - expected: what ``read()`` returned.
    ///   - record: what to keep; `nil` to keep nothing.
    /// - Returns: whether it is kept now. `false` means that another process was faster.
    /// - Throws: when the store can't be written now.
    func replace(_ expected: Data?, with record: Data?) async throws -> Bool

    /// The store for one gateway's record. ``PortcullisSession`` calls it once, so that two
    /// gateways of an app never share a record, whatever the app calls its store.
    ///
    /// - Parameter endpoints: the gateway's, as in ``PortcullisConfiguration/endpoints``.
    /// - Returns: a store whose name comes from the origin of the endpoints. A store that holds
    ///   one record only returns itself, as the default does: give each gateway its own.
    func scoped(to endpoints: URL) -> any EnrolmentStore
}

extension EnrolmentStore {
    /// The store itself.
    public func scoped(to endpoints: URL) -> any EnrolmentStore { self }
}

/// A store that ends with the process, for tests and previews. An app that ships with it attests a
/// new key at every launch.
public actor MemoryEnrolmentStore: EnrolmentStore {
    private var record: Data?

    /// A store that holds this record.
    public init(_ record: Data? = nil) { self.record = record }

    /// What is kept.
    public func read() -> Data? { record }

    /// Keeps a new record if the store holds the expected one.
    public func replace(_ expected: Data?, with record: Data?) -> Bool {
        guard self.record == expected else { return false }
        self.record = record
        return true
    }
}

/// A random text that is made once for an install of an app, and goes when the app is deleted. What
/// outlives the app, such as a Keychain item, carries it to say of which install it is.
///
/// It is in a file rather than in the defaults: of two processes that start for the first time at
/// once, exactly one makes it, and a file that is closed before the first unlock can't be mistaken
/// for one that is not there.
struct InstallMark: Sendable {
    private let file: PrivateFile

    /// A mark in this file. Its folder is made if need be.
    init(file url: URL) { file = PrivateFile(url: url) }

    /// The mark of this install.
    func text() async throws -> String {
        if let mark = try kept() { return mark }
        try FileManager.default.createDirectory(
            at: file.url.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        return try await file.locked {
            if let mark = try kept() { return mark }
            let mark = UUID().uuidString
            try file.write(Data(mark.utf8))
            return mark
        }
    }

    /// A file that is something else is replaced.
    private func kept() throws -> String? {
        guard let content = try file.read() else { return nil }
        return UUID(uuidString: String(decoding: content, as: UTF8.self))?.uuidString
    }
}
