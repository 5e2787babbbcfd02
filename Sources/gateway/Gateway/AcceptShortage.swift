import Lanes

/// Decides which shortages of the listeners are logged: the first one and its end, and at most one
/// in ``quietNanoseconds``, since they may come and go many times a second.
struct AcceptShortage {
    enum Notice: Equatable {
        case none
        case began(SocketError)
        case ended
    }

    /// How long no other shortage is logged: ten seconds.
    static let quietNanoseconds: UInt64 = 10_000_000_000

    /// Listeners that pause.
    private var count = 0
    private var toldAt: UInt64?
    private var isTold = false

    /// A listener began to pause, with why; or, `nil`, has accepted all clients that waited.
    mutating func changed(_ error: SocketError?, now: UInt64) -> Notice {
        guard let error else {
            count = max(count - 1, 0)
            guard count == 0, isTold else { return .none }
            isTold = false
            return .ended
        }
        count += 1
        guard !isTold else { return .none }
        if let toldAt, now &- toldAt < Self.quietNanoseconds { return .none }
        toldAt = now
        isTold = true
        return .began(error)
    }
}
