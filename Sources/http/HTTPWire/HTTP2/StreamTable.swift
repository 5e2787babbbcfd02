/// The open streams of a connection, in the order of their numbers.
///
/// A new stream has a higher number than all before it (RFC 9113 §5.1.1), so it is added at the
/// end, and streams are found by bisection. Each request looks for its streams some twenty times: a
/// dictionary would hash a number each time.
struct StreamTable<Channel: AnyObject> {
    private var ids: [Int32] = []
    private(set) var channels: [Channel] = []

    var count: Int { channels.count }

    subscript(id: Int32) -> Channel? {
        let place = place(of: id)
        return place < ids.count && ids[place] == id ? channels[place] : nil
    }

    /// Adds a stream, whose number has no other.
    mutating func add(_ channel: Channel, as id: Int32) {
        guard let last = ids.last, last > id else {
            ids.append(id)
            channels.append(channel)
            return
        }
        let place = place(of: id)
        ids.insert(id, at: place)
        channels.insert(channel, at: place)
    }

    mutating func remove(_ id: Int32) {
        let place = place(of: id)
        guard place < ids.count, ids[place] == id else { return }
        ids.remove(at: place)
        channels.remove(at: place)
    }

    /// The place of the first number that is not below this one.
    private func place(of id: Int32) -> Int {
        var (low, high) = (0, ids.count)
        while low < high {
            let middle = (low + high) / 2
            if ids[middle] < id { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
