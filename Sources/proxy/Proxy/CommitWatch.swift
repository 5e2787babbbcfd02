import Lanes

/// The alarm that ends waits for commits. It is made when a request first waits for one.
enum CommitWatch {
    case none
    /// No request waits. It may ring all the same.
    case off(Alarm)
    /// It rings when the first request may have waited too long, or earlier.
    case on(Alarm)

    /// Lets go of the alarm, and has it let go of what it would call.
    mutating func end() {
        switch self {
        case .none: break
        case .off(let alarm), .on(let alarm):
            alarm.close()
            alarm.rang = nil
        }
        self = .none
    }
}
