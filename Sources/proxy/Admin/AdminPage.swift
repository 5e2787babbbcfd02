/// What can be asked for; the raw value is the path.
enum AdminPage: String, CaseIterable {
    case metrics = "/metrics"
    case status = "/status"
    case health = "/healthz"
    case readiness = "/readyz"

    /// The page of a path, compared octet by octet: no other spelling names it.
    ///
    /// - Parameters:
    ///   - octets: of a request head.
    ///   - path: in `octets`, without query.
    init?(_ octets: Span<UInt8>, _ path: Range<Int>) {
        let spelled = octets.extracting(path)
        let page = Self.allCases.first { page in
            let expected = page.rawValue.utf8
            return expected.count == spelled.count
                && zip(expected, spelled.indices).allSatisfy { $0 == spelled[$1] }
        }
        guard let page else { return nil }
        self = page
    }
}
