import HTTPWire
import Rules

/// Where in a head the fields of the proof are.
struct ProofFields {
    var keyID: Range<Int>?
    var assertion: Range<Int>?
    var challenge: Range<Int>?
    var isUnsupported = false
    /// One of them occurs twice: no specification says which one counts.
    var isAmbiguous = false

    /// Whether none of an assertion's fields is there.
    var isEmpty: Bool { keyID == nil && assertion == nil && challenge == nil }

    /// Looks at every field once.
    init(_ section: borrowing FieldSection, _ octets: Span<UInt8>, names: FieldNames) {
        for index in section.fields.indices {
            let field = section.fields[index]
            if Self.equal(octets, field.name, names.keyID) {
                note(field.value, \.keyID)
            } else if Self.equal(octets, field.name, names.assertion) {
                note(field.value, \.assertion)
            } else if Self.equal(octets, field.name, names.challenge) {
                note(field.value, \.challenge)
            } else if Self.equal(octets, field.name, names.unsupported) {
                isUnsupported = true
            }
        }
    }

    private mutating func note(
        _ value: Range<Int>,
        _ path: WritableKeyPath<ProofFields, Range<Int>?>
    ) {
        if self[keyPath: path] != nil { isAmbiguous = true }
        self[keyPath: path] = value
    }

    /// Names are compared without case (RFC 9110 §5.1); `name` is in lower case.
    static func equal(_ octets: Span<UInt8>, _ range: Range<Int>, _ name: [UInt8]) -> Bool {
        guard range.count == name.count else { return false }
        for index in 0..<name.count {
            let octet = octets[range.lowerBound + index]
            let isUpper = octet >= UInt8(ascii: "A") && octet <= UInt8(ascii: "Z")
            guard (isUpper ? octet | 0x20 : octet) == name[index] else { return false }
        }
        return true
    }
}
