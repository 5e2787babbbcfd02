/// The header of the PROXY protocol. A proxy that passes on bytes names its client in it.
///
/// HAProxy, "The PROXY protocol, Versions 1 & 2" (doc/proxy-protocol.txt). It is the first thing on
/// a connection, in front of TLS. Version 1 is a line (section 2.1):
///
///     PROXY TCP4 192.0.2.1 198.51.100.7 51234 443 CR LF
///
/// Version 2 is binary (section 2.2):
///
///     bytes    0…11      12                    13                       14…15    16…
///              signature version 2, command    family, transport        length   addresses, TLVs
///
/// Reading is strict: what two readers could understand differently is refused. The destination and
/// the TLVs are checked for their form and not used.
package enum ProxyHeader {
    /// The party that connected to the proxy.
    package enum Source: Hashable, Sendable {
        /// The proxy names no client: the connection is its own (`LOCAL`, a health check), or it
        /// can't name an IP address (`UNKNOWN`, a Unix socket).
        case unnamed
        case client(IPAddress, port: UInt16)
    }

    /// How far the header was read.
    package enum Reading: Equatable, Sendable {
        /// The header is longer than these bytes.
        case needMore
        /// The header has this number of bytes.
        case complete(byteCount: Int, Source)
    }

    /// The most bytes of a header. TLVs of cloud providers take about 100. nginx: 4096.
    package static let byteCountMax = 4096
    /// The most bytes of a line, its end included (section 2.1).
    static let lineByteCountMax = 107

    /// CR LF CR LF NUL CR LF QUIT LF: no line of version 1, and no request, begins so.
    static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]
    private static let lineStart = [UInt8]("PROXY ".utf8)

    /// Reads a header from the first bytes of a connection.
    ///
    /// - Throws: as soon as the bytes can't become a header any more.
    package static func read(_ bytes: Span<UInt8>) throws(MalformedProxyHeader) -> Reading {
        guard !bytes.isEmpty else { return .needMore }
        let isBinary = bytes[0] == signature[0]
        let start = isBinary ? signature : lineStart
        for index in 0..<min(bytes.count, start.count) where bytes[index] != start[index] {
            throw .start
        }
        guard bytes.count > start.count else { return .needMore }
        return isBinary ? try readBinary(bytes) : try readLine(bytes)
    }

    // MARK: Version 1

    private static func readLine(_ bytes: Span<UInt8>) throws(MalformedProxyHeader) -> Reading {
        var end = lineStart.count
        while end < bytes.count, bytes[end] != UInt8(ascii: "\r") {
            guard end < lineByteCountMax - 2 else { throw .tooLong }
            guard bytes[end] != UInt8(ascii: "\n") else { throw .line }
            end += 1
        }
        guard end + 1 < bytes.count else { return .needMore }
        guard bytes[end + 1] == UInt8(ascii: "\n") else { throw .line }
        let source = try source(bytes, lineStart.count..<end)
        return .complete(byteCount: end + 2, source)
    }

    /// The text after `PROXY` and a space.
    private static func source(
        _ bytes: Span<UInt8>,
        _ line: Range<Int>
    ) throws(MalformedProxyHeader) -> Source {
        var rest = line
        let family = word(bytes, &rest)
        if ByteScan.isSame(bytes, family, as: "UNKNOWN") {
            // Whatever follows is ignored, as section 2.1 says.
            return .unnamed
        }
        let isIPv6 = ByteScan.isSame(bytes, family, as: "TCP6")
        guard isIPv6 || ByteScan.isSame(bytes, family, as: "TCP4") else { throw .family }
        let words = [word(bytes, &rest), word(bytes, &rest)]
        let ports = [word(bytes, &rest), word(bytes, &rest)]
        // Nothing follows the last word, not even a space.
        guard rest.isEmpty, ports[1].upperBound == line.upperBound else { throw .line }
        var addresses: [IPAddress] = []
        for word in words {
            guard IPAddress.isIPv6(bytes, word) == isIPv6, let address = IPAddress(bytes, word)
            else { throw .address }
            addresses.append(address)
        }
        guard let port = port(bytes, ports[0]), self.port(bytes, ports[1]) != nil else {
            throw .port
        }
        return .client(addresses[0], port: port)
    }

    /// Takes the bytes up to a space, and that space; all of the rest where there is none.
    private static func word(_ bytes: Span<UInt8>, _ rest: inout Range<Int>) -> Range<Int> {
        let start = rest.lowerBound
        var end = start
        while end < rest.upperBound, bytes[end] != UInt8(ascii: " ") { end += 1 }
        rest = min(end + 1, rest.upperBound)..<rest.upperBound
        return start..<end
    }

    /// A decimal number without leading zeros.
    private static func port(_ bytes: Span<UInt8>, _ word: Range<Int>) -> UInt16? {
        guard (1...5).contains(word.count) else { return nil }
        if word.count > 1, bytes[word.lowerBound] == UInt8(ascii: "0") { return nil }
        var number: UInt32 = 0
        for index in word {
            guard ASCIIByte.isDigit(bytes[index]) else { return nil }
            number = number * 10 + UInt32(bytes[index] & 0x0F)
        }
        return UInt16(exactly: number)
    }

    // MARK: Version 2

    private static let fixedByteCount = 16

    private static func readBinary(_ bytes: Span<UInt8>) throws(MalformedProxyHeader) -> Reading {
        let isLocal: Bool
        switch bytes[signature.count] {
        case 0x20: isLocal = true
        case 0x21: isLocal = false
        default: throw .version
        }
        guard bytes.count >= fixedByteCount else { return .needMore }
        let end = fixedByteCount + (Int(bytes[14]) << 8 | Int(bytes[15]))
        guard end <= byteCountMax else { throw .tooLong }
        // LOCAL: the receiver must ignore the rest, its family included.
        let addresses = isLocal ? nil : try addressByteCount(bytes[13])
        if let addresses, end < fixedByteCount + addresses { throw .address }
        guard bytes.count >= end else { return .needMore }
        guard let addresses else { return .complete(byteCount: end, .unnamed) }
        try checkAttachments(bytes, (fixedByteCount + addresses)..<end)
        return .complete(byteCount: end, source(bytes, addressByteCount: addresses))
    }

    /// The number of bytes of the addresses of a family.
    private static func addressByteCount(_ family: UInt8) throws(MalformedProxyHeader) -> Int {
        switch family {
        // Unspecified.
        case 0x00: 0
        case 0x11: 12
        case 0x21: 36
        // Unix sockets.
        case 0x31: 216
        // Datagrams included, since this is a stream.
        default: throw .family
        }
    }

    private static func source(_ bytes: Span<UInt8>, addressByteCount count: Int) -> Source {
        switch count {
        case 12:
            let address = UInt32(truncatingIfNeeded: number(bytes, at: 0, 4))
            return .client(.v4(address), port: UInt16(truncatingIfNeeded: number(bytes, at: 8, 2)))
        case 36:
            let address = IPAddress(high: number(bytes, at: 0, 8), low: number(bytes, at: 8, 8))
            return .client(address, port: UInt16(truncatingIfNeeded: number(bytes, at: 32, 2)))
        default: return .unnamed
        }
    }

    /// A number of the address block, the highest byte first.
    private static func number(_ bytes: Span<UInt8>, at start: Int, _ byteCount: Int) -> UInt64 {
        var number: UInt64 = 0
        for index in start..<start + byteCount {
            number = number << 8 | UInt64(bytes[fixedByteCount + index])
        }
        return number
    }

    /// TLVs: a byte of type, two of length, the value (section 2.2).
    private static func checkAttachments(
        _ bytes: Span<UInt8>,
        _ range: Range<Int>
    ) throws(MalformedProxyHeader) {
        var index = range.lowerBound
        while index < range.upperBound {
            guard range.upperBound - index >= 3 else { throw .attachment }
            index += 3 + (Int(bytes[index + 1]) << 8 | Int(bytes[index + 2]))
        }
        guard index == range.upperBound else { throw .attachment }
    }
}

/// Why bytes are no header of the PROXY protocol. The raw value is the log's word.
package enum MalformedProxyHeader: String, Error, CaseIterable, Sendable {
    /// The bytes begin as neither version does: the peer sends no header.
    case start = "no-header"
    /// A version other than 2, or a command other than LOCAL and PROXY.
    case version = "version"
    /// A family or a transport that is not a stream's.
    case family = "family"
    /// The line has not the form of section 2.1.
    case line = "line"
    /// An address that is none of its family, or cut short.
    case address = "address"
    /// A port that is no decimal number up to 65535, or begins with a zero.
    case port = "port"
    /// TLVs that don't fill the space that is left for them.
    case attachment = "tlv"
    /// A line above 107 bytes, or more than ``ProxyHeader/byteCountMax``.
    case tooLong = "too-long"
}

extension ProxyHeader {
    /// One end of the connection that a header is about.
    package struct End: Hashable, Sendable {
        package let address: IPAddress
        package let port: UInt16

        package init(_ address: IPAddress, port: UInt16) {
            self.address = address
            self.port = port
        }
    }

    /// Appends a header of version 2: the command PROXY with both ends, or LOCAL without.
    ///
    /// Ends of two families are written as IPv6, the IPv4 one as `::ffff:a.b.c.d`.
    package static func append(_ ends: (source: End, destination: End)?, to out: inout [UInt8]) {
        out.append(contentsOf: signature)
        guard let ends else {
            out.append(contentsOf: [0x20, 0x00, 0x00, 0x00])
            return
        }
        out.append(0x21)
        switch (ends.source.address, ends.destination.address) {
        case (.v4(let source), .v4(let destination)):
            out.append(contentsOf: [0x11, 0x00, 12])
            append(UInt64(source), 4, to: &out)
            append(UInt64(destination), 4, to: &out)
        case (let source, let destination):
            out.append(contentsOf: [0x21, 0x00, 36])
            for address in [source, destination] {
                switch address {
                case .v4(let address):
                    append(0, 8, to: &out)
                    append(0xFFFF << 32 | UInt64(address), 8, to: &out)
                case .v6(let high, let low):
                    append(high, 8, to: &out)
                    append(low, 8, to: &out)
                }
            }
        }
        append(UInt64(ends.source.port), 2, to: &out)
        append(UInt64(ends.destination.port), 2, to: &out)
    }

    private static func append(_ number: UInt64, _ byteCount: Int, to out: inout [UInt8]) {
        for place in (0..<byteCount).reversed() {
            out.append(UInt8(truncatingIfNeeded: number >> UInt64(place * 8)))
        }
    }
}
