/// The client's address, and the trusted proxies through which its request came.
///
/// The gateway believes a proxy's entry when it trusts the proxy. It begins with the peer and reads
/// the list from its right end, entry by entry, while the last address is trusted. The first
/// untrusted address is the client. Entries further left are the client's own and are never read
/// (RFC 7239 §8.1). So no text of a client can change how the gateway reads an entry after it: the
/// end of that entry is known, and its beginning is searched from there.
///
/// Reading stops at an entry that is no address (`unknown`, `_hidden`, an empty one, a broken one).
/// The client then is the last address that was read: at worst the peer's, and never none.
///
/// Reusable: ``read(_:_:source:peer:isTrusted:)`` forgets the last request and keeps the memory.
package struct ClientAddress: Sendable {
    /// The field that the trusted proxies write. It is only one: a proxy that writes one of them
    /// passes on the other as the client sent it.
    package enum Source: Sendable {
        case xForwardedFor, forwarded

        var kind: FieldKind { self == .xForwardedFor ? .xForwardedFor : .forwarded }
    }

    /// The most entries that are read.
    private static var hopsMax: Int { 16 }

    /// The addresses that are believed, the nearest first: the peer, then what the entries name.
    package private(set) var hops: [IPAddress] = []
    /// The first byte of the outermost entry that is believed, in the head; `nil` without one.
    private(set) var firstEntry: Int?

    package init() {}

    /// The client: the outermost address that is believed.
    package var client: IPAddress { hops.last ?? .v4(0) }

    /// Finds the client of a request.
    ///
    /// `isTrusted`: asked for `peer` first, then for each address that was read.
    package mutating func read(
        _ fields: FieldSection,
        _ bytes: Span<UInt8>,
        source: Source,
        peer: IPAddress,
        isTrusted: (IPAddress) -> Bool
    ) {
        hops.removeAll(keepingCapacity: true)
        firstEntry = nil
        hops.append(peer)
        guard fields.contains(source.kind), isTrusted(peer) else { return }
        for index in fields.fields.indices.reversed()
        where fields.fields[index].kind == source.kind {
            let value = fields.fields[index].value
            var end = value.upperBound
            while true {
                let start: Int
                let node: Range<Int>
                switch source {
                case .xForwardedFor:
                    start = Self.start(bytes, value.lowerBound..<end)
                    node = ByteScan.trimmed(bytes, start..<end)
                case .forwarded:
                    let list = value.lowerBound..<end
                    guard let element = ForwardedElement(bytes, endOf: list) else { return }
                    start = element.start
                    node = element.node
                }
                guard hops.count <= Self.hopsMax, let address = Self.address(bytes, node) else {
                    return
                }
                hops.append(address)
                firstEntry = start
                guard isTrusted(address) else { return }
                guard start > value.lowerBound else { break }
                // The comma.
                end = start - 1
            }
        }
    }

    /// Where the last entry of a list begins: after a comma, or at the beginning. X-Forwarded-For
    /// has no quotes.
    private static func start(_ bytes: Span<UInt8>, _ list: Range<Int>) -> Int {
        var index = list.upperBound
        while index > list.lowerBound, bytes[index - 1] != UInt8(ascii: ",") { index -= 1 }
        return index
    }

    /// An address: `192.0.2.1`, `2001:db8::1`, or in brackets; the last and IPv4 also with a port.
    private static func address(_ bytes: Span<UInt8>, _ node: Range<Int>) -> IPAddress? {
        if let address = IPAddress(bytes, node) { return address }
        guard !node.isEmpty else { return nil }
        var end = node.upperBound
        while end > node.lowerBound, ASCIIByte.isDigit(bytes[end - 1]) { end -= 1 }
        let hasPort =
            (1...5).contains(node.upperBound - end) && end > node.lowerBound
            && bytes[end - 1] == UInt8(ascii: ":")
        let host = node.lowerBound..<(hasPort ? end - 1 : node.upperBound)
        guard host.count > 2, bytes[host.lowerBound] == UInt8(ascii: "["),
            bytes[host.upperBound - 1] == UInt8(ascii: "]")
        else {
            // After a bare IPv6 address, a port can't be told from a group.
            guard hasPort, let address = IPAddress(bytes, host), case .v4 = address,
                !bytes.contains(UInt8(ascii: ":"), in: host)
            else { return nil }
            return address
        }
        let inner = host.lowerBound + 1..<host.upperBound - 1
        return bytes.contains(UInt8(ascii: ":"), in: inner) ? IPAddress(bytes, inner) : nil
    }
}

extension Span<UInt8> {
    fileprivate func contains(_ byte: UInt8, in range: Range<Int>) -> Bool {
        for index in range where self[index] == byte { return true }
        return false
    }
}

/// The certificate that a client has shown, as origins and the log get it.
///
/// Made once for a connection, since its line is the same for all requests.
package final class ClientCertificate: Sendable {
    /// A subject of more bytes is left out: it is the client's to choose.
    package static let subjectBytesMax = 1_024

    /// `X-Forwarded-Client-Cert`, as Envoy writes it.
    let line: [UInt8]
    /// The beginning of the fingerprint, for the log.
    package let logName: String

    /// `fingerprint` is the SHA-256 of the certificate; `subject` is in the form of RFC 4514.
    package init(fingerprint: [UInt8], subject: [UInt8]) {
        let hex = fingerprint.map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
        logName = String(hex.prefix(16))
        var line = Array("X-Forwarded-Client-Cert: Hash=\(hex)".utf8)
        if subject.count <= Self.subjectBytesMax {
            line += Array(";Subject=\"".utf8)
            for byte in subject {
                // RFC 9110 §5.6.4. What is no visible character has no place in a field.
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                    line.append(UInt8(ascii: "\\"))
                }
                line.append((0x20...0x7E).contains(byte) ? byte : UInt8(ascii: "?"))
            }
            line.append(UInt8(ascii: "\""))
        }
        line.appendLineEnd()
        self.line = line
    }
}

/// The last element of a list of Forwarded (RFC 7239 §4), found from its end.
///
///     forwarded-element = [ forwarded-pair ] *( ";" [ forwarded-pair ] )
///     forwarded-pair    = token "=" ( token / quoted-string )
///
/// Another party wrote the text before the element, which may have a quote that never ends. So a
/// quoted string is read from its last quote to its first, and the comma before the element is the
/// next one outside of quotes.
struct ForwardedElement {
    /// The first byte after the comma, or of the list.
    private(set) var start: Int
    /// The value of the `for` parameter, without quotes.
    private(set) var node: Range<Int>

    /// `nil` when the element is malformed, or has no `for` parameter, or more than one.
    ///
    /// - `list`: what comes before the element, and the element.
    init?(_ bytes: Span<UInt8>, endOf list: Range<Int>) {
        guard let start = Self.start(bytes, list) else { return nil }
        let end = list.upperBound
        self.start = start
        node = start..<start
        var found: Range<Int>?
        var index = start
        while true {
            while index < end, Self.isSeparator(bytes[index]) { index += 1 }
            guard index < end else { break }
            guard let pair = Self.pair(bytes, from: &index, to: end) else { return nil }
            guard ByteScan.equal(bytes, pair.name, to: "for") else { continue }
            guard found == nil else { return nil }
            found = pair.value
        }
        guard let found else { return nil }
        node = found
    }

    private static func isSeparator(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ";") || ASCIIByte.isBlank(byte)
    }

    /// Where the last element begins; `nil` where a quoted string has no beginning.
    private static func start(_ bytes: Span<UInt8>, _ list: Range<Int>) -> Int? {
        var index = list.upperBound
        while index > list.lowerBound {
            index -= 1
            switch bytes[index] {
            case UInt8(ascii: ","): return index + 1
            case UInt8(ascii: "\""):
                guard !isEscaped(bytes, at: index, in: list) else { return nil }
                repeat {
                    guard index > list.lowerBound else { return nil }
                    index -= 1
                } while bytes[index] != UInt8(ascii: "\"") || isEscaped(bytes, at: index, in: list)
            default: break
            }
        }
        return list.lowerBound
    }

    /// Whether an odd number of backslashes precedes a byte.
    private static func isEscaped(_ bytes: Span<UInt8>, at index: Int, in list: Range<Int>) -> Bool
    {
        var first = index
        while first > list.lowerBound, bytes[first - 1] == UInt8(ascii: "\\") { first -= 1 }
        return (index - first) % 2 == 1
    }

    /// Reads a pair up to a separator or the end. An address needs no quotes, whatever bytes it
    /// has. A backslash in a quoted value stays as it is, so that it can't become part of an
    /// address.
    private static func pair(
        _ bytes: Span<UInt8>,
        from index: inout Int,
        to end: Int
    ) -> (name: Range<Int>, value: Range<Int>)? {
        let nameStart = index
        while index < end, ByteSet.token.contains(bytes[index]) { index += 1 }
        let name = nameStart..<index
        guard !name.isEmpty, index < end, bytes[index] == UInt8(ascii: "=") else { return nil }
        index += 1
        guard index < end, bytes[index] == UInt8(ascii: "\"") else {
            let start = index
            while index < end, !isSeparator(bytes[index]) {
                guard bytes[index] != UInt8(ascii: "\"") else { return nil }
                index += 1
            }
            return (name, start..<index)
        }
        index += 1
        let start = index
        while index < end, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard index < end else { return nil }
        let value = start..<index
        index += 1
        guard index == end || isSeparator(bytes[index]) else { return nil }
        return (name, value)
    }
}
