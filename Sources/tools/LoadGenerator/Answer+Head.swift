import HTTPWire

extension Answer {
    private static let challengeName = Array("app-attest-challenge".utf8)
    private static let retryName = Array("retry-after".utf8)

    /// Takes what the head has.
    mutating func read(_ section: borrowing FieldSection, _ octets: Span<UInt8>) {
        for index in section.fields.indices {
            let field = section.fields[index]
            if Self.equal(octets, field.name, Self.challengeName) {
                octets.extracting(field.value).withUnsafeBufferPointer {
                    challenge.append(contentsOf: $0)
                }
            } else if Self.equal(octets, field.name, Self.retryName) {
                retryAfter = field.value.reduce(0) { min($0 * 10 + Int(octets[$1] & 15), 3600) }
            }
        }
    }

    /// RFC 9110 §5.1: names are compared without case.
    private static func equal(_ octets: Span<UInt8>, _ range: Range<Int>, _ name: [UInt8]) -> Bool {
        guard range.count == name.count else { return false }
        for step in 0..<name.count where octets[range.lowerBound + step] | 0x20 != name[step] {
            // A hyphen has that bit already.
            return false
        }
        return true
    }
}
