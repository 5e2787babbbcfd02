internal import CNGHTTP2

/// The fields of a response's head in HTTP/1.1's form, as nghttp2 takes them.
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
        while value < line.upperBound, head[value] == 0x20 { value += 1 }
        return field(
            base + line.lowerBound,
            colon - line.lowerBound,
            base + value,
            line.upperBound - value
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
