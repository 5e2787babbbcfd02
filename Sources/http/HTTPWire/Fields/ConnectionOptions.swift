/// What the Connection lines of a message say (RFC 9110 §7.6.1).
package struct ConnectionOptions: Sendable, Equatable {
    package private(set) var close = false
    package private(set) var keepAlive = false
    package private(set) var upgrade = false
    /// How many options name fields.
    package internal(set) var nominations = 0

    /// Whether the sender keeps the connection (RFC 9112 §9.3).
    func isPersistent(in version: HTTPVersion) -> Bool {
        switch version {
        case .http11: !close
        case .http10: keepAlive && !close
        }
    }

    /// Takes an option that is no field name, or names a field that is never forwarded anyway.
    mutating func insert(_ octets: Span<UInt8>, _ option: Range<Int>) -> Bool {
        switch option.count {
        case 2: return OctetScan.equal(octets, option, "te")
        case 5:
            guard OctetScan.equal(octets, option, "close") else { return false }
            close = true
        case 7:
            guard OctetScan.equal(octets, option, "upgrade") else { return false }
            upgrade = true
        case 10:
            guard OctetScan.equal(octets, option, "keep-alive") else { return false }
            keepAlive = true
        default: return false
        }
        return true
    }
}
