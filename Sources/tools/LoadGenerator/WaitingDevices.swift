/// Devices that try again later, sorted by time; the next one is the last element.
struct WaitingDevices {
    private var waiting: [(at: UInt64, device: Int)] = []

    var isEmpty: Bool { waiting.isEmpty }

    /// When the first of them comes, in monotonic nanoseconds; `nil` without any.
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
        waiting.removeLast()
        return first.device
    }
}
