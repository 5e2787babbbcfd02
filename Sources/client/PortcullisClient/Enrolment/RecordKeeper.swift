import Foundation

/// Reads and writes the record in the store, always from what it was to what it becomes.
struct RecordKeeper: Sendable {
    /// A record and the bytes that the store holds for it.
    struct Kept: Sendable {
        let bytes: Data?
        let record: EnrolmentRecord
    }

    /// What came of writing.
    enum Writing: Sendable {
        case kept(Kept)
        /// Another process was faster.
        case lost
        /// The store can't be written now.
        case failed
    }

    let store: any EnrolmentStore
    let gateway: String
    /// Whether the device counts as one that can't attest, by the record that was seen last.
    let isDeviceBroken = Guarded(false)

    /// The most times that a change is tried against other processes.
    private static let triesMax = 8

    /// `nil` when the store can't be read now.
    func read() async -> Kept? {
        do {
            let bytes = try await store.read()
            return saw(Kept(bytes: bytes, record: EnrolmentRecord(bytes, gateway: gateway)))
        } catch {
            return nil
        }
    }

    /// Writes a record in the place of another.
    func replace(_ kept: Kept, with record: EnrolmentRecord) async -> Writing {
        guard record != kept.record else { return .kept(kept) }
        guard let bytes = record.bytes,
            let isKept = try? await store.replace(kept.bytes, with: bytes)
        else { return .failed }
        return isKept ? .kept(saw(Kept(bytes: bytes, record: record))) : .lost
    }

    private func saw(_ kept: Kept) -> Kept {
        isDeviceBroken.withLock { $0 = kept.record.isDeviceBroken }
        return kept
    }

    /// Changes the record, whatever other processes do meanwhile.
    ///
    /// - Parameter body: the new record; `nil` for no change.
    /// - Returns: whether it was changed; `nil` when the store failed.
    func change(_ body: (EnrolmentRecord) -> EnrolmentRecord?) async -> Bool? {
        for _ in 0..<Self.triesMax {
            guard let kept = await read() else { return nil }
            guard let record = body(kept.record) else { return false }
            switch await replace(kept, with: record) {
            case .kept: return true
            case .lost: continue
            case .failed: return nil
            }
        }
        return nil
    }
}

/// Keys that the gateway or the device refused in this process, and why. None of them is used
/// again, whatever a record says that was read before.
struct RefusedKeys: Sendable {
    /// Oldest first.
    private var entries: [(keyID: String, reason: String)] = []

    /// The most keys that are remembered. A day brings few.
    private static let kept = 16

    /// Why a key was refused; `nil` for one that was not.
    func reason(_ keyID: String) -> String? { entries.last { $0.keyID == keyID }?.reason }

    /// Remembers a refused key.
    mutating func add(_ keyID: String, reason: String) {
        guard self.reason(keyID) == nil else { return }
        if entries.count >= Self.kept { entries.removeFirst() }
        entries.append((keyID, reason))
    }
}
