extension Span<UInt8> {
    /// Whether two ranges hold the same octets.
    func equals(_ left: Range<Int>, _ right: Range<Int>) -> Bool {
        guard left.count == right.count else { return false }
        for step in 0..<left.count
        where self[left.lowerBound + step] != self[right.lowerBound + step] {
            return false
        }
        return true
    }

    /// Whether a range holds these octets.
    func equals(_ range: Range<Int>, _ octets: [UInt8]) -> Bool {
        guard range.count == octets.count else { return false }
        for step in 0..<octets.count where self[range.lowerBound + step] != octets[step] {
            return false
        }
        return true
    }

    /// The octets of a range as an array of their own.
    func copy(_ range: Range<Int>) -> [UInt8] {
        var copy: [UInt8] = []
        copy.reserveCapacity(range.count)
        for index in range { copy.append(self[index]) }
        return copy
    }
}
