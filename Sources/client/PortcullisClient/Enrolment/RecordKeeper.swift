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

/// One session that enrols, told apart from all others by a random text.
///
/// A lease whose holder is gone is worth nothing: one of this process that was let go, or one whose
/// process has ended.
final class LeaseHolder: Sendable {
    private static let living = Guarded<Set<String>>([])

    let name = UUID().uuidString
    private let process = ProcessInfo.processInfo.processIdentifier

    init() { Self.living.withLock { [name] in _ = $0.insert(name) } }

    deinit { retire() }

    /// Gives up all leases. Nothing else is needed for the last session of an app.
    func retire() { Self.living.withLock { [name] in _ = $0.remove(name) } }

    /// The longest lease, in seconds, whatever the limits of the process that made it.
    static let longest: Double = 3600
    /// How much longer a lease is at least than the longest step of an enrolment, in seconds.
    static let margin: Double = 30

    /// A lease of this holder that covers one step of an enrolment.
    func lease(from now: Date, _ limits: PortcullisLimits) -> EnrolmentRecord.Lease {
        let step = max(limits.serviceWait.seconds, limits.callTime.seconds)
        let seconds = min(max(limits.lease.seconds, step + Self.margin), Self.longest)
        let until = now.timeIntervalSince1970 + seconds
        return EnrolmentRecord.Lease(holder: name, process: process, until: until)
    }

    /// Whether a lease keeps this holder from enrolling, now. One that ends later than the longest
    /// does was made before the clock was set back.
    func isKept(out lease: EnrolmentRecord.Lease?, now: Date) -> Bool {
        guard let lease, lease.holder != name else { return false }
        let rest = lease.until - now.timeIntervalSince1970
        guard rest > 0, rest <= Self.longest else { return false }
        guard lease.process == process else { return !Self.hasEnded(lease.process) }
        return Self.living.withLock { $0.contains(lease.holder) }
    }

    /// A signal 0 asks whether a process is there. One that may not be asked is there (EPERM).
    private static func hasEnded(_ process: Int32) -> Bool {
        process > 0 && kill(process, 0) == -1 && errno == ESRCH
    }
}
