import Lanes

/// The alarm that ends waits for commits. It is made when a request first waits for one.
enum CommitWatch {
    case none
    /// No request has waited since it rang.
    case off(Alarm)
    /// It rings when the first request may have waited too long, or earlier.
    case on(Alarm)

    /// Lets go of the alarm.
    mutating func end() {
        switch self {
        case .none: break
        case .off(let alarm), .on(let alarm): alarm.close()
        }
        self = .none
    }
}
