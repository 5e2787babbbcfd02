extension Wire {
    /// Takes bytes up to and with a blank line.
    package func readHead() throws -> WireHead {
        var seen = 0
        while true {
            if let end = Self.blankLine(inbox, from: max(seen - 3, 0)) {
                let text = String(decoding: inbox[..<end], as: UTF8.self)
                inbox.removeFirst(end)
                return try Self.head(text)
            }
            seen = inbox.count
            try receive()
        }
    }

    private static func blankLine(_ bytes: [UInt8], from start: Int) -> Int? {
        guard bytes.count >= 4 else { return nil }
        let blank: [UInt8] = [13, 10, 13, 10]
        var index = start
        while index + 4 <= bytes.count {
            if bytes[index..<index + 4].elementsEqual(blank) { return index + 4 }
            index += 1
        }
        return nil
    }

    private static func head(_ text: String) throws -> WireHead {
        // A Swift character joins CR and LF, so one character ends a line.
        var lines = text.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
        lines.removeLast(2)
        guard let first = lines.first, !first.isEmpty else {
            throw WireFault.malformed("no start line")
        }
        return WireHead(startLine: first, fields: try lines.dropFirst().map(field))
    }

    private static func field(_ line: String) throws -> WireHead.Field {
        guard let colon = line.firstIndex(of: ":"), colon > line.startIndex,
            !line[..<colon].contains(where: { $0 == " " || $0 == "\t" }),
            !line.contains(where: { $0 == "\r" || $0 == "\n" || $0 == "\0" })
        else { throw WireFault.malformed("field line \(line.debugDescription)") }
        let value = line[line.index(after: colon)...]
        return (
            String(line[..<colon]),
            String(value.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
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
        var index = 0
        while true {
            while index + 1 < inbox.count {
                if inbox[index] == 13, inbox[index + 1] == 10 {
                    let line = String(decoding: inbox[..<index], as: UTF8.self)
                    inbox.removeFirst(index + 2)
                    return line
                }
                index += 1
            }
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
            trailers.append(try Self.field(line))
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
        _ use: ([UInt8]) -> Void
    ) throws {
        _ = try readContent(head.framing(in: kind)) { count in
            var left = count ?? .max
            do {
                while left > 0 {
                    if inbox.isEmpty { try receive() }
                    let piece = inbox.count <= left ? inbox : Array(inbox[..<left])
                    inbox.removeFirst(piece.count)
                    use(piece)
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
