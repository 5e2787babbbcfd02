internal import CNGHTTP2

/// The fields of a head in HTTP/1.1's form, as nghttp2 takes them.
///
/// Why what is `unsafe` here holds: pointers to the head and to the fields live for the call of
/// `with`, in which nghttp2 copies what they point to. Places are those of a line, below the count;
/// there are as many fields as there is memory for.
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
        status: Status,
        _ body: (UnsafeMutableBufferPointer<nghttp2_nv>) -> Int32
    ) -> Int32 {
        // The pointers live for the call, in which nghttp2 copies what they point to.
        unsafe withLines(of: head, adding: 1) { lines, space in
            var count = 0
            if let code = unsafe Self.code(lines.head, status) {
                unsafe space.initializeElement(at: 0, to: field(":status", code, count: 3))
                count = 1
                _ = unsafe lines.next()
            }
            while count < space.count, let line = unsafe lines.next() {
                guard let field = unsafe Self.field(lines.head, line),
                    unsafe status != .established || !isNamed(field, "sec-websocket-accept")
                else { continue }
                unsafe space.initializeElement(at: count, to: field)
                count += 1
            }
            return unsafe body(UnsafeMutableBufferPointer(rebasing: space[..<count]))
        }
    }

    /// The lines of a head up to its blank line, or of a section that has none.
    @unsafe private struct Lines {
        let head: UnsafeBufferPointer<UInt8>
        /// The place after the last line.
        private(set) var end = 0

        init(_ head: UnsafeBufferPointer<UInt8>) { unsafe self.head = unsafe head }

        /// The next line, without its end; `nil` after the last.
        mutating func next() -> Range<Int>? {
            guard unsafe end < head.count else { return nil }
            let start = unsafe end
            let lineEnd = unsafe ByteScan.control(in: head.span, from: start, to: head.count)
            unsafe end = unsafe min(lineEnd + 2, head.count)
            return lineEnd > start ? start..<lineEnd : nil
        }
    }

    /// Calls `body` with the lines of a head, and with memory for a field of each and for this
    /// number of other fields.
    private static func withLines<Result>(
        of head: Span<UInt8>,
        adding others: Int,
        _ body: (inout Lines, UnsafeMutableBufferPointer<nghttp2_nv>) -> Result
    ) -> Result {
        let count = ByteScan.count(of: 0x0A, in: head) + others
        return unsafe head.withUnsafeBufferPointer { head in
            unsafe withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: count) { space in
                var lines = unsafe Lines(head)
                return unsafe body(&lines, space)
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
        guard head.count >= 12, let own = unsafe head.baseAddress.map({ unsafe $0 + 9 }) else {
            return nil
        }
        switch status {
        case .none: return nil
        case .own: return unsafe own
        case .established: return unsafe established.utf8Start
        case .refusingTunnel: return unsafe own.pointee == 0x32 ? refusing.utf8Start : own
        }
    }

    /// The field of a line `name: value`; `nil` for any other line.
    private static func field(
        _ head: UnsafeBufferPointer<UInt8>,
        _ line: Range<Int>
    ) -> nghttp2_nv? {
        guard let base = head.baseAddress else { return nil }
        var colon = line.lowerBound
        while colon < line.upperBound, unsafe head[colon] != UInt8(ascii: ":") { colon += 1 }
        guard colon > line.lowerBound, colon < line.upperBound else { return nil }
        var value = colon + 1
        // A value has no white space around it (RFC 9113 §8.2.1).
        var end = line.upperBound
        while value < end, unsafe head[value] == 0x20 || head[value] == 0x09 { value += 1 }
        while value < end, unsafe head[end - 1] == 0x20 || head[end - 1] == 0x09 { end -= 1 }
        var found = unsafe field(
            base + line.lowerBound,
            nameCount: colon - line.lowerBound,
            value: base + value,
            valueCount: end - value
        )
        if unsafe isUnique(found) { unsafe found.flags = UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) }
        return unsafe found
    }

    /// Whether each message has a value of its own. In the table of fields (RFC 7541 §2.3.2) such a
    /// value would be of no use, and take the place of one that the next message has again; and
    /// nghttp2 compares a value with all that the table has of its name.
    private static func isUnique(_ field: nghttp2_nv) -> Bool {
        switch unsafe field.namelen {
        case 11: unsafe isNamed(field, "traceparent")
        case 12: unsafe isNamed(field, "x-request-id") || isNamed(field, "grpc-timeout")
        case 24: unsafe isNamed(field, "app-attest-verdict-token")
        default: false
        }
    }

    private static func field(
        _ name: UnsafePointer<UInt8>,
        nameCount: Int,
        value: UnsafePointer<UInt8>,
        valueCount: Int
    ) -> nghttp2_nv {
        // nghttp2 has no const here, and writes to neither.
        unsafe nghttp2_nv(
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
    /// Calls `body` with the fields of a request's head in HTTP/1.1's form.
    ///
    /// - head: from the request line to the blank line, as the gateway writes it, and what follows.
    /// - Returns: what `body` returns, and the place after the blank line; `nil` where the request
    ///   line has no method and target.
    static func with(
        request head: Span<UInt8>,
        scheme: StaticString,
        _ body: (UnsafeMutableBufferPointer<nghttp2_nv>) -> Int32
    ) -> (result: Int32, end: Int)? {
        // The pointers live for the call, in which nghttp2 copies what they point to.
        unsafe withLines(of: head, adding: 4) { lines, space -> (result: Int32, end: Int)? in
            let head = unsafe lines.head
            guard let base = head.baseAddress, let line = unsafe lines.next(),
                let methodEnd = unsafe head[line].firstIndex(of: 0x20),
                let targetEnd = unsafe head[line].lastIndex(of: 0x20), methodEnd < targetEnd
            else { return nil }
            let target = methodEnd + 1
            // Host may stand anywhere, and pseudo-fields come first: its place is kept.
            var first = 1
            let scheme = unsafe (scheme.utf8Start, scheme.utf8CodeUnitCount)
            unsafe space.initializeElement(at: 1, to: field(":method", base, count: methodEnd))
            unsafe space.initializeElement(at: 2, to: field(":scheme", scheme.0, count: scheme.1))
            let path = unsafe field(":path", base + target, count: targetEnd - target)
            unsafe space.initializeElement(at: 3, to: path)
            var count = 4
            while count < space.count, let line = unsafe lines.next() {
                guard let field = unsafe Self.field(head, line) else { continue }
                switch unsafe place(of: field) {
                case .authority:
                    let authority = unsafe Self.field(
                        ":authority",
                        field.value,
                        count: field.valuelen
                    )
                    unsafe space.initializeElement(at: 0, to: authority)
                    first = 0
                case .others:
                    unsafe space.initializeElement(at: count, to: field)
                    count += 1
                case .nowhere: break
                }
            }
            let fields = unsafe UnsafeMutableBufferPointer(rebasing: space[first..<count])
            return unsafe (body(fields), lines.end)
        }
    }

    /// Where a request's field stands on a stream.
    private enum Place {
        /// Host becomes a pseudo-field.
        case authority
        case others
        /// It is about one connection of HTTP/1.1 (RFC 9113 §8.2.2).
        case nowhere
    }

    private static func place(of field: nghttp2_nv) -> Place {
        switch unsafe field.namelen {
        case 2 where unsafe isNamed(field, "te"):
            // TE may say `trailers` and nothing else (RFC 9113 §8.2.2).
            let value = unsafe UnsafeBufferPointer(start: field.value, count: field.valuelen)
            return unsafe RequestHeadBuilder.equal(value, "trailers") ? .others : .nowhere
        case 4 where unsafe isNamed(field, "host"): return .authority
        case 7 where unsafe isNamed(field, "upgrade"): return .nowhere
        case 10 where unsafe isNamed(field, "connection") || isNamed(field, "keep-alive"):
            return .nowhere
        case 14 where unsafe isNamed(field, "http2-settings"): return .nowhere
        case 16 where unsafe isNamed(field, "proxy-connection"): return .nowhere
        case 17 where unsafe isNamed(field, "transfer-encoding"): return .nowhere
        default: return .others
        }
    }

    private static func isNamed(_ field: nghttp2_nv, _ name: StaticString) -> Bool {
        let own = unsafe UnsafeBufferPointer(start: field.name, count: field.namelen)
        // Folded as letters are. The names that are compared have letters, digits and hyphens, and
        // no other byte of a name becomes one of these by that.
        return name.withUTF8Buffer { name in
            unsafe own.count == name.count
                && zip(own, name).allSatisfy { $0 == $1 || $0 | 0x20 == $1 && $1 >= 0x61 }
        }
    }

    private static func field(
        _ name: StaticString,
        _ value: UnsafePointer<UInt8>,
        count: Int
    ) -> nghttp2_nv {
        unsafe field(
            name.utf8Start,
            nameCount: name.utf8CodeUnitCount,
            value: value,
            valueCount: count
        )
    }
}
