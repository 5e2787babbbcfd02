extension Span<UInt8> {
    /// Whether two ranges hold the same bytes.
    func equals(_ left: Range<Int>, _ right: Range<Int>) -> Bool {
        guard left.count == right.count else { return false }
        for step in 0..<left.count
        where self[left.lowerBound + step] != self[right.lowerBound + step] {
            return false
        }
        return true
    }

    /// Whether a range holds these bytes.
    func equals(_ range: Range<Int>, _ bytes: [UInt8]) -> Bool {
        guard range.count == bytes.count else { return false }
        for step in 0..<bytes.count where self[range.lowerBound + step] != bytes[step] {
            return false
        }
        return true
    }

    /// The bytes of a range as an array of their own.
    func copy(_ range: Range<Int>) -> [UInt8] {
        var copy: [UInt8] = []
        copy.reserveCapacity(range.count)
        for index in range { copy.append(self[index]) }
        return copy
    }
}
