internal import CNGHTTP2

/// The fields of a head in HTTP/1.1's form, as nghttp2 takes them.
enum NGHTTP2Fields {
    /// How a head's status line becomes a field.
    enum Status {
        /// Trailers have none.
        case none
        case own
        /// 101 becomes 200: the tunnel is open. The client sent no key for Sec-WebSocket-Accept to
        /// answer (RFC 8441 §5).
        case established
        /// In answer to CONNECT, a 2xx says that the tunnel is open (RFC 9110 §9.3.6). Here the
        /// origin has answered with content instead, so the client gets 502 with that content.
        case refusingTunnel
    }

    /// Calls `body` with the fields of a head in HTTP/1.1's form. Names become lower-case when
    /// nghttp2 copies them.
    static func with(
        _ head: Span<UInt8>,
        _ status: Status,
        _ body: (UnsafeMutableBufferPointer<nghttp2_nv>) -> Int32
    ) -> Int32 {
        // The pointers live for the call, in which nghttp2 copies what they point to.
        head.withUnsafeBufferPointer { head in
            let lines = head.reduce(0) { $0 + ($1 == 0x0A ? 1 : 0) }
            return withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: lines + 1) {
                space in
                var count = 0
                var start = 0
                if let code = Self.code(head, status) {
                    space.initializeElement(at: 0, to: field(statusName, 7, code, 3))
                    count = 1
                    start = Self.lineEnd(head, 0) + 2
                }
                while start < head.count {
                    let end = Self.lineEnd(head, start)
                    if let field = Self.field(head, start..<end),
                        status != .established || !isAccept(field)
                    {
                        space.initializeElement(at: count, to: field)
                        count += 1
                    }
                    start = end + 2
                }
                return body(UnsafeMutableBufferPointer(rebasing: space[..<count]))
            }
        }
    }

    /// The three digits of the status; `nil` for none.
    private static func code(
        _ head: UnsafeBufferPointer<UInt8>,
        _ status: Status
    ) -> UnsafePointer<UInt8>? {
        let (established, refusing): (StaticString, StaticString) = ("200", "502")
        // `HTTP/1.1 200`
        guard head.count >= 12, let own = head.baseAddress.map({ $0 + 9 }) else { return nil }
        switch status {
        case .none: return nil
        case .own: return own
        case .established: return established.utf8Start
        case .refusingTunnel: return own.pointee == 0x32 ? refusing.utf8Start : own
        }
    }

    private static func isAccept(_ field: nghttp2_nv) -> Bool {
        let name = UnsafeBufferPointer(start: field.name, count: field.namelen)
        // Folded as letters are; no other byte of a name becomes one of these by that.
        return name.lazy.map { $0 | 0x20 }.elementsEqual("sec-websocket-accept".utf8)
    }

    private static var statusName: UnsafePointer<UInt8> {
        let name: StaticString = ":status"
        return name.utf8Start
    }

    private static func lineEnd(_ head: UnsafeBufferPointer<UInt8>, _ start: Int) -> Int {
        var end = start
        while end < head.count, head[end] != 0x0D { end += 1 }
        return end
    }

    /// The field of a line `name: value`; `nil` for any other line.
    private static func field(
        _ head: UnsafeBufferPointer<UInt8>,
        _ line: Range<Int>
    ) -> nghttp2_nv? {
        guard let base = head.baseAddress else { return nil }
        var colon = line.lowerBound
        while colon < line.upperBound, head[colon] != UInt8(ascii: ":") { colon += 1 }
        guard colon > line.lowerBound, colon < line.upperBound else { return nil }
        var value = colon + 1
        // A value has no white space around it (RFC 9113 §8.2.1).
        var end = line.upperBound
        while value < end, head[value] == 0x20 || head[value] == 0x09 { value += 1 }
        while value < end, head[end - 1] == 0x20 || head[end - 1] == 0x09 { end -= 1 }
        return field(
            base + line.lowerBound,
            colon - line.lowerBound,
            base + value,
            end - value
        )
    }

    private static func field(
        _ name: UnsafePointer<UInt8>,
        _ nameCount: Int,
        _ value: UnsafePointer<UInt8>,
        _ valueCount: Int
    ) -> nghttp2_nv {
        // nghttp2 has no const here, and writes to neither.
        nghttp2_nv(
            name: UnsafeMutablePointer(mutating: name),
            value: UnsafeMutablePointer(mutating: value),
            namelen: nameCount,
            valuelen: valueCount,
            flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)
        )
    }
}

// Requests.
extension NGHTTP2Fields {
    /// Fields of one connection of HTTP/1.1 (RFC 9113 §8.2.2). Host becomes a pseudo-field.
    private static let leftOut: [StaticString] = [
        "host", "connection", "transfer-encoding", "upgrade", "keep-alive", "proxy-connection",
        "http2-settings",
    ]

    /// Calls `body` with the fields of a request's head in HTTP/1.1's form.
    ///
    /// - head: from the request line to the blank line, as the gateway writes it.
    /// - Returns: `nil` where the request line has no method and target.
    static func with(
        request head: Span<UInt8>,
        scheme: StaticString,
        _ body: (UnsafeMutableBufferPointer<nghttp2_nv>) -> Int32
    ) -> Int32? {
        // The pointers live for the call, in which nghttp2 copies what they point to.
        head.withUnsafeBufferPointer { head -> Int32? in
            let lines = head.reduce(0) { $0 + ($1 == 0x0A ? 1 : 0) }
            return withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: lines + 4) {
                space -> Int32? in
                let lineEnd = Self.lineEnd(head, 0)
                guard let base = head.baseAddress,
                    let methodEnd = head[..<lineEnd].firstIndex(of: 0x20),
                    let targetEnd = head[..<lineEnd].lastIndex(of: 0x20), methodEnd < targetEnd
                else { return nil }
                let target = methodEnd + 1
                space.initializeElement(at: 0, to: field(":method", base, methodEnd))
                space.initializeElement(
                    at: 1,
                    to: field(":scheme", scheme.utf8Start, scheme.utf8CodeUnitCount)
                )
                space.initializeElement(
                    at: 2,
                    to: field(":path", base + target, targetEnd - target)
                )
                var count = 3
                var start = lineEnd + 2
                var others = start
                while start < head.count {
                    let end = Self.lineEnd(head, start)
                    if let host = Self.field(head, start..<end), isNamed(host, "host") {
                        space.initializeElement(
                            at: count,
                            to: field(":authority", host.value, host.valuelen)
                        )
                        count += 1
                    }
                    start = end + 2
                }
                while others < head.count {
                    let end = Self.lineEnd(head, others)
                    if let field = Self.field(head, others..<end), isForStream(field) {
                        space.initializeElement(at: count, to: field)
                        count += 1
                    }
                    others = end + 2
                }
                return body(UnsafeMutableBufferPointer(rebasing: space[..<count]))
            }
        }
    }

    /// Whether a stream may have the field. TE may say `trailers` and nothing else (RFC 9113
    /// §8.2.2).
    private static func isForStream(_ field: nghttp2_nv) -> Bool {
        if isNamed(field, "te") {
            let value = UnsafeBufferPointer(start: field.value, count: field.valuelen)
            return value.elementsEqual("trailers".utf8)
        }
        return !leftOut.contains { isNamed(field, $0) }
    }

    private static func isNamed(_ field: nghttp2_nv, _ name: StaticString) -> Bool {
        let own = UnsafeBufferPointer(start: field.name, count: field.namelen)
        // Folded as letters are. The names that are compared have letters, digits and hyphens, and
        // no other byte of a name becomes one of these by that.
        return name.withUTF8Buffer { name in
            own.count == name.count
                && zip(own, name).allSatisfy { $0 == $1 || $0 | 0x20 == $1 && $1 >= 0x61 }
        }
    }

    private static func field(
        _ name: StaticString,
        _ value: UnsafePointer<UInt8>,
        _ count: Int
    ) -> nghttp2_nv {
        field(name.utf8Start, name.utf8CodeUnitCount, value, count)
    }
}
