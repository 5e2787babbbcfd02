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
