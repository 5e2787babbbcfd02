import SoftwareAuthenticator

/// The devices of a lane: whose turn it is, and which counter comes next.
struct DeviceSet {
    let count: Int
    /// The first of these numbers never signs a fresh request, so that it is below all of them, and
    /// beyond any window, once one was admitted.
    let reservedCounter: UInt32
    private let underWayMax: UInt8
    private var next: [UInt32]
    private var underWay: [UInt8]
    private var admitted: [Bool]
    private var turn = 0

    /// The widest window of a rule, and one.
    static let counterGap: UInt32 = 65

    init(count: Int, firstCounter: UInt32, underWayMax: Int) {
        self.count = count
        reservedCounter = firstCounter
        self.underWayMax = UInt8(clamping: underWayMax)
        next = [UInt32](repeating: firstCounter + Self.counterGap, count: count)
        underWay = [UInt8](repeating: 0, count: count)
        admitted = [Bool](repeating: false, count: count)
    }

    /// The next device that may send; `nil` when those that are looked at are all busy.
    ///
    /// - `attempts`: the most that are looked at: no more are busy than connections there are.
    mutating func take(attempts: Int) -> Int? {
        for _ in 0..<min(attempts, count) {
            let device = turn
            turn += 1
            if turn == count { turn = 0 }
            if underWay[device] < underWayMax { return device }
        }
        return nil
    }

    /// How many counters the device has used.
    func order(of device: Int) -> Int { Int(next[device] - firstCounter) }

    /// Uses the device's next counter.
    mutating func begin(_ device: Int) -> UInt32 {
        underWay[device] += 1
        let counter = next[device]
        next[device] = counter + 1
        return counter
    }

    /// Begins a request that takes no counter.
    mutating func beginUncounted(_ device: Int) { underWay[device] += 1 }

    /// A request of it was answered, or never will be.
    mutating func end(_ device: Int, isAdmitted: Bool) {
        underWay[device] -= 1
        if isAdmitted { admitted[device] = true }
    }

    /// Whether the reserved counter of a device is overtaken.
    func isReservedOvertaken(_ device: Int) -> Bool { admitted[device] }

    /// The counter that a device begins with.
    var firstCounter: UInt32 { reservedCounter + Self.counterGap }

    /// One above all counters that were used.
    var endCounter: UInt32 { next.max() ?? firstCounter }
}
