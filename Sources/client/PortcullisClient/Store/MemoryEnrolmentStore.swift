public import Foundation

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
