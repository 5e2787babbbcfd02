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

    /// A store whose record says that a key is enrolled.
    ///
    /// - endpoints: of the gateway that has it.
    package init(enrolled keyID: String, at endpoints: URL) {
        var enrolled = EnrolmentRecord(gateway: endpoints.absoluteString)
        enrolled.phase = .enrolled(keyID: keyID)
        record = enrolled.bytes
    }

    /// What is kept.
    public func read() -> Data? { record }

    /// Keeps a new record if the store holds the expected one.
    public func replace(_ expected: Data?, with record: Data?) -> Bool {
        guard self.record == expected else { return false }
        self.record = record
        return true
    }
}

/// The name of a gateway's record: the origin of its endpoints, so that each gateway of an app has
/// a record of its own.
struct RecordName: Hashable, Sendable {
    /// `api.example.com`, or `api.example.com:8443`. The port of HTTPS is left out.
    let text: String

    /// `nil` for a URL that is none of HTTP.
    init?(_ endpoints: URL) {
        guard let origin = CanonicalRequest.Origin(endpoints) else { return nil }
        let isUsual = origin.scheme == "https" && origin.port == 443
        text = isUsual ? origin.host : "\(origin.host):\(origin.port)"
    }

    /// The same for a file.
    var fileText: String { text.replacing(":", with: "_") }
}
