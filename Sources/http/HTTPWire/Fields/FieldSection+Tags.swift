extension FieldSection {
    /// Whether If-None-Match names an entity tag (RFC 9110 §13.1.2), compared weakly, or is `*`.
    ///
    /// - tag: with its quotes; no comma or quote between them.
    package func hasMatch(of tag: [UInt8], _ bytes: Span<UInt8>) -> Bool {
        for field in fields where ByteScan.equal(bytes, field.name, "if-none-match") {
            if ByteScan.equal(bytes, ByteScan.trimmed(bytes, field.value), "*") { return true }
            var place = field.value.lowerBound
            // Tags are quoted strings without escapes (RFC 9110 §8.8.3). The text between them,
            // such as `W/` and commas, has no meaning in a weak comparison.
            while let start = Self.quote(bytes, place..<field.value.upperBound),
                let end = Self.quote(bytes, start + 1..<field.value.upperBound)
            {
                if end - start + 1 == tag.count,
                    tag.indices.allSatisfy({ bytes[start + $0] == tag[$0] })
                {
                    return true
                }
                place = end + 1
            }
        }
        return false
    }

    private static func quote(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int? {
        range.first { bytes[$0] == UInt8(ascii: "\"") }
    }
}
