extension RequestHead {
    /// Whether the request has passed this gateway before (RFC 9110 §7.6).
    ///
    /// Looks for ``HeadWriter/pseudonym`` as received-by of any member of Via:
    /// `received-protocol RWS received-by [ RWS comment ]`.
    package func hasPassedHere(_ octets: Span<UInt8>) -> Bool {
        guard fields.contains(.via) else { return false }
        for field in fields.fields where field.kind == .via {
            var index = field.value.lowerBound
            let end = field.value.upperBound
            while index < end {
                let start = index
                while index < end, octets[index] != UInt8(ascii: ",") { index += 1 }
                let member = OctetScan.trimmed(octets, start..<index)
                if Self.receivedBy(octets, member, HeadWriter.pseudonym) { return true }
                index += 1
            }
        }
        return false
    }

    private static func receivedBy(
        _ octets: Span<UInt8>,
        _ member: Range<Int>,
        _ pseudonym: StaticString
    ) -> Bool {
        var start = member.lowerBound
        while start < member.upperBound, !Octet.isBlank(octets[start]) { start += 1 }
        while start < member.upperBound, Octet.isBlank(octets[start]) { start += 1 }
        var end = start
        while end < member.upperBound, !Octet.isBlank(octets[end]) { end += 1 }
        return OctetScan.equal(octets, start..<end, pseudonym)
    }
}
