import ClientKit
import Foundation
import PortcullisClient

/// A store in memory that holds an answer back, or fails, as a test says.
actor GatedStore: EnrolmentStore {
    private let store: MemoryEnrolmentStore
    private var latch: Latch?
    private var failures = 0

    init(_ store: MemoryEnrolmentStore = MemoryEnrolmentStore()) { self.store = store }

    /// The next read is answered when the latch opens, with what the store held before.
    func holdRead(at latch: Latch) { self.latch = latch }

    /// The next writes fail.
    func failWrites(_ count: Int) { failures = count }

    func read() async throws -> Data? {
        let record = await store.read()
        guard let latch else { return record }
        self.latch = nil
        await latch.pass()
        return record
    }

    func replace(_ expected: Data?, with record: Data?) async throws -> Bool {
        if failures > 0 {
            failures -= 1
            throw CocoaError(.fileWriteOutOfSpace)
        }
        return await store.replace(expected, with: record)
    }
}
