import Glibc

extension Wire {
    private static let lineEnd: [UInt8] = [13, 10]
    private static let blankLine: [UInt8] = [13, 10, 13, 10]

    /// Where a pattern begins. C's search: nearly all that scenarios read comes by here, and a loop
    /// in Swift takes a hundred times as long in a debug build.
    package static func index(of pattern: [UInt8], in bytes: [UInt8], from start: Int = 0) -> Int? {
        bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, let first = pattern.first else { return nil }
            var place = start
            while place + pattern.count <= bytes.count,
                let found = memchr(base + place, Int32(first), bytes.count - place)
            {
                place = UnsafeRawPointer(found) - base
                guard place + pattern.count <= bytes.count else { return nil }
                if memcmp(base + place, pattern, pattern.count) == 0 { return place }
                place += 1
            }
            return nil
        }
    }

    /// The parts between a pattern, empty ones too.
    package static func split(_ bytes: [UInt8], at pattern: [UInt8]) -> [[UInt8]] {
        var parts: [[UInt8]] = []
        var start = 0
        while let end = index(of: pattern, in: bytes, from: start) {
            parts.append(Array(bytes[start..<end]))
            start = end + pattern.count
        }
        return parts + [Array(bytes[start...])]
    }

    /// Takes bytes up to and with a blank line.
    package func readHead() throws -> WireHead {
        var seen = 0
        while true {
            if let end = Self.index(of: Self.blankLine, in: inbox, from: max(seen - 3, 0)) {
                let head = Array(inbox[..<end])
                inbox.removeFirst(end + Self.blankLine.count)
                return try Self.head(head)
            }
            seen = inbox.count
            try receive()
        }
    }

    private static func head(_ bytes: [UInt8]) throws -> WireHead {
        let lines = split(bytes, at: lineEnd)
        guard !lines[0].isEmpty else { throw WireFault.malformed("no start line") }
        return WireHead(
            startLine: String(decoding: lines[0], as: UTF8.self),
            fields: try lines.dropFirst().map(field)
        )
    }

    private static func field(_ line: [UInt8]) throws -> WireHead.Field {
        func place(_ byte: Character) -> Int? {
            byte.asciiValue.flatMap { index(of: [$0], in: line) }
        }
        guard let colon = place(":"), colon > 0, place(" ") ?? colon >= colon,
            place("\t") ?? colon >= colon,
            place("\r") == nil, place("\n") == nil, place("\0") == nil
        else {
            let text = String(decoding: line, as: UTF8.self)
            throw WireFault.malformed("field line \(text.debugDescription)")
        }
        var (start, end) = (colon + 1, line.count)
        let space = UInt8(ascii: " ")
        while start < end, line[start] == space { start += 1 }
        while start < end, line[end - 1] == space { end -= 1 }
        return (
            String(decoding: line[..<colon], as: UTF8.self),
            String(decoding: line[start..<end], as: UTF8.self)
        )
    }

    /// Takes exactly so many bytes.
    package func take(_ count: Int) throws -> [UInt8] {
        while inbox.count < count { try receive() }
        defer { inbox.removeFirst(count) }
        return Array(inbox[..<count])
    }

    /// Takes a line and its CRLF, which is not returned.
    package func takeLine() throws -> String {
        var seen = 0
        while true {
            if let end = Self.index(of: Self.lineEnd, in: inbox, from: max(seen - 1, 0)) {
                let line = String(decoding: inbox[..<end], as: UTF8.self)
                inbox.removeFirst(end + Self.lineEnd.count)
                return line
            }
            seen = inbox.count
            try receive()
        }
    }

    // MARK: Content

    /// Goes through the content that a head announces. `pass` takes so many bytes of it, or with
    /// `nil` all that comes until the end.
    ///
    /// - Returns: the trailers.
    private func readContent(
        _ framing: WireHead.Framing,
        _ pass: (Int?) throws -> Void
    ) throws -> [WireHead.Field] {
        switch framing {
        case .none: return []
        case .untilClose: try pass(nil)
        case .length(let count): try pass(count)
        case .chunked:
            while true {
                let line = try takeLine()
                guard !line.isEmpty, line.allSatisfy(\.isHexDigit), let size = Int(line, radix: 16)
                else { throw WireFault.malformed("chunk size \(line.debugDescription)") }
                guard size > 0 else { return try takeTrailers() }
                try pass(size)
                guard try take(2) == [13, 10] else { throw WireFault.malformed("end of a chunk") }
            }
        }
        return []
    }

    private func takeTrailers() throws -> [WireHead.Field] {
        var trailers: [WireHead.Field] = []
        while true {
            let line = try takeLine()
            guard !line.isEmpty else { return trailers }
            trailers.append(try Self.field(Array(line.utf8)))
        }
    }

    /// Takes all of the content. What came of content that does not end stays in the inbox.
    private func takeContent(
        _ framing: WireHead.Framing
    ) throws -> (body: [UInt8], trailers: [WireHead.Field]) {
        var body: [UInt8] = []
        let trailers = try readContent(framing) { count in
            body += try count.map(take) ?? readToEnd()
        }
        return (body, trailers)
    }

    /// Gives the content that follows a head piece by piece; returns when its end has come.
    package func streamContent(
        of head: WireHead,
        in kind: WireHead.Kind,
        _ use: ([UInt8]) throws -> Void
    ) throws {
        _ = try readContent(head.framing(in: kind)) { count in
            var left = count ?? .max
            do {
                while left > 0 {
                    if inbox.isEmpty { try receive() }
                    let piece = inbox.count <= left ? inbox : Array(inbox[..<left])
                    inbox.removeFirst(piece.count)
                    try use(piece)
                    left -= piece.count
                }
            } catch WireFault.ended where count == nil {
                // The end of the connection is the end of the content.
            }
        }
    }

    // MARK: Messages

    /// Reads one response, an interim one too.
    package func readResponse(to method: String = "GET") throws -> WireResponse {
        let head = try readHead()
        let status = try head.status()
        var response = WireResponse(head: head, status: status)
        if method == "HEAD" || status < 200 || status == 204 || status == 304 { return response }
        let framing = try head.framing(in: .response)
        response.isUntilClose = framing == .untilClose
        (response.body, response.trailers) = try takeContent(framing)
        return response
    }

    /// Reads the next response that is no interim one.
    package func readFinalResponse(to method: String = "GET") throws -> WireResponse {
        while true {
            let response = try readResponse(to: method)
            if response.status >= 200 { return response }
        }
    }

    /// Reads a request's head.
    package func readRequestHead() throws -> WireRequest {
        let head = try readHead()
        let parts = head.startLine.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2] == "HTTP/1.1" else {
            throw WireFault.malformed("request line \(head.startLine.debugDescription)")
        }
        return WireRequest(head: head, method: String(parts[0]), target: String(parts[1]))
    }

    /// Reads the content that belongs to a request's head.
    package func readContent(of request: inout WireRequest) throws {
        let framing = try request.head.framing(in: .request)
        (request.body, request.trailers) = try takeContent(framing)
    }

    /// Reads until the peer ends in an orderly way.
    package func readToEnd() throws -> [UInt8] {
        do {
            while true { try receive() }
        } catch WireFault.ended {
            defer { inbox = [] }
            return inbox
        }
    }

    /// Whether the connection ends now, in whatever way, with nothing more to read.
    package func endsSilently() throws -> Bool {
        do {
            return try readToEnd().isEmpty
        } catch WireFault.reset {
            return inbox.isEmpty
        }
    }
}
