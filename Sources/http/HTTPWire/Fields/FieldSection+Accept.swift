extension FieldSection {
    /// Whether an Accept line names OpenMetrics, and not with the weight 0 (RFC 9110 §12.4.2).
    package func acceptsOpenMetrics(_ octets: Span<UInt8>) -> Bool {
        for field in fields where OctetScan.equal(octets, field.name, "accept") {
            var start = field.value.lowerBound
            while start < field.value.upperBound {
                var end = start
                while end < field.value.upperBound, octets[end] != UInt8(ascii: ",") { end += 1 }
                if Self.isOpenMetrics(octets, OctetScan.trimmed(octets, start..<end)) {
                    return true
                }
                start = end + 1
            }
        }
        return false
    }

    private static func isOpenMetrics(_ octets: Span<UInt8>, _ range: Range<Int>) -> Bool {
        let name = "application/openmetrics-text" as StaticString
        let end = range.lowerBound + name.utf8CodeUnitCount
        guard range.upperBound >= end, OctetScan.equal(octets, range.lowerBound..<end, name),
            end == range.upperBound || !OctetSet.token.contains(octets[end])
        else { return false }
        for start in end..<range.upperBound where start + 3 <= range.upperBound {
            guard OctetScan.equal(octets, start..<start + 3, "q=0") else { continue }
            let digits = start + 3..<range.upperBound
            return digits.contains { (0x31...0x39).contains(octets[$0]) }
        }
        return true
    }
}
