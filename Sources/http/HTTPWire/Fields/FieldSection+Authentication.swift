extension FieldSection {
    /// Whether the message takes part in authentication of a connection instead of a request: NTLM,
    /// or Negotiate, which may carry it (RFC 4559 §6). All later requests on that connection then
    /// count as the user's, also those of another client.
    package func authenticatesConnection(_ octets: Span<UInt8>) -> Bool {
        guard !kinds.isDisjoint(with: Self.authenticating) else { return false }
        for field in fields where Self.authenticating.contains(field.kind) {
            if Self.namesConnectionScheme(octets, field) { return true }
        }
        return false
    }

    private static let authenticating = FieldKindSet([.authorization, .wwwAuthenticate])

    /// Of Authorization the scheme is the first word. WWW-Authenticate may list several challenges
    /// with parameters; any word of it counts, which at worst costs a connection.
    private static func namesConnectionScheme(_ octets: Span<UInt8>, _ field: Field) -> Bool {
        var index = field.value.lowerBound
        let end = field.value.upperBound
        while index < end {
            let start = index
            while index < end, OctetSet.token.contains(octets[index]) { index += 1 }
            let word = start..<index
            if OctetScan.equal(octets, word, "ntlm") || OctetScan.equal(octets, word, "negotiate") {
                return true
            }
            guard field.kind == .wwwAuthenticate else { return false }
            index += 1
        }
        return false
    }
}
