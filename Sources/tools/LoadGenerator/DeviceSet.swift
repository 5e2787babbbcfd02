/// The devices of an event loop: the next one, and its next counter.
struct DeviceSet {
    let count: Int
    /// The first of these numbers never signs a fresh request. So once a fresh one was admitted, it
    /// is below all of them and beyond any window.
    let reservedCounter: UInt32
    private let underWayMax: UInt8
    private var next: [UInt32]
    private var underWay: [UInt8]
    private var admitted: [Bool]
    private var turn = 0

    /// One more than the widest window of a rule.
    static let counterGap: UInt32 = 65

    init(count: Int, firstCounter: UInt32, underWayMax: Int) {
        self.count = count
        reservedCounter = firstCounter
        self.underWayMax = UInt8(clamping: underWayMax)
        next = [UInt32](repeating: firstCounter + Self.counterGap, count: count)
        underWay = [UInt8](repeating: 0, count: count)
        admitted = [Bool](repeating: false, count: count)
    }

    /// The next device that may send; `nil` when all devices that are tried are busy.
    ///
    /// - `attempts`: the most devices that are tried: at most as many are busy as there are
    ///   connections.
    mutating func take(attempts: Int) -> Int? {
        for _ in 0..<min(attempts, count) {
            let device = turn
            turn += 1
            if turn == count { turn = 0 }
            if underWay[device] < underWayMax { return device }
        }
        return nil
    }

    func order(of device: Int) -> Int { Int(next[device] - firstCounter) }

    /// Uses the device's next counter.
    mutating func begin(_ device: Int) -> UInt32 {
        underWay[device] += 1
        let counter = next[device]
        next[device] = counter + 1
        return counter
    }

    /// Begins a request that uses no counter.
    mutating func beginUncounted(_ device: Int) { underWay[device] += 1 }

    /// Ends a request of the device, which was answered or never will be.
    mutating func end(_ device: Int, isAdmitted: Bool) {
        underWay[device] -= 1
        if isAdmitted { admitted[device] = true }
    }

    /// Whether the gateway has admitted a counter above the reserved one of a device.
    func isReservedOvertaken(_ device: Int) -> Bool { admitted[device] }

    var firstCounter: UInt32 { reservedCounter + Self.counterGap }

    /// One more than the highest used counter.
    var endCounter: UInt32 { next.max() ?? firstCounter }
}

/// Devices that try again later, sorted by time; the next one is the last element.
struct WaitingDevices {
    private var waiting: [(at: UInt64, device: Int)] = []

    var isEmpty: Bool { waiting.isEmpty }

    /// When the first of them is due, in monotonic nanoseconds; `nil` without any.
    var nextAt: UInt64? { waiting.last?.at }

    mutating func add(_ device: Int, at time: UInt64) {
        var (low, high) = (0, waiting.count)
        while low < high {
            let middle = (low + high) / 2
            if waiting[middle].at > time { low = middle + 1 } else { high = middle }
        }
        waiting.insert((time, device), at: low)
    }

    /// Takes the first whose time has come.
    mutating func take(now: UInt64) -> Int? {
        guard let first = waiting.last, first.at <= now else { return nil }
        return waiting.removeLast().device
    }
}
