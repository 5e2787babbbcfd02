extension FieldSection {
    /// Where the first User-Agent line names the build of an app: the `1042` of
    /// `Shop/1042 CFNetwork/1410.0.3 Darwin/22.6.0`, as Apple's URL loading system writes it where
    /// the app says nothing else. Anybody can write the same.
    package func appBuild(_ octets: Span<UInt8>) -> Range<Int>? {
        for field in fields where OctetScan.equal(octets, field.name, "user-agent") {
            let value = field.value
            guard let slash = value.first(where: { octets[$0] == UInt8(ascii: "/") }) else {
                return nil
            }
            let build = slash + 1..<value.upperBound
            guard let space = build.first(where: { octets[$0] == UInt8(ascii: " ") }) else {
                return nil
            }
            let system = "cfnetwork/" as StaticString
            let end = space + 1 + system.utf8CodeUnitCount
            guard end <= value.upperBound, OctetScan.equal(octets, space + 1..<end, system) else {
                return nil
            }
            return slash + 1..<space
        }
        return nil
    }
}
