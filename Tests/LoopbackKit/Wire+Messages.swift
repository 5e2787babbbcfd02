/// A message as a test reads it: a reader of its own, strict and simple, which shares nothing with
/// the gateway's.
package struct WireHead {
    package let startLine: String
    package let fields: [(name: String, value: String)]

    /// The values of all lines of this name, case aside.
    package func values(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    package func value(_ name: String) -> String? {
        let values = values(name)
        return values.count == 1 ? values[0] : nil
    }

    package func has(_ name: String) -> Bool { !values(name).isEmpty }
}

package struct WireResponse {
    package let head: WireHead
    package let status: Int
    package var body: [UInt8] = []
    package var trailers: [(name: String, value: String)] = []
    /// Whether its end was the connection's.
    package var isUntilClose = false

    package var text: String { String(decoding: body, as: UTF8.self) }
}

package struct WireRequest {
    package let head: WireHead
    package let method: String
    package let target: String
    package var body: [UInt8] = []
    package var trailers: [(name: String, value: String)] = []
}

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

    private static func blankLine(_ octets: [UInt8], from start: Int) -> Int? {
        guard octets.count >= 4 else { return nil }
        let blank: [UInt8] = [13, 10, 13, 10]
        var index = start
        while index + 4 <= octets.count {
            if octets[index..<index + 4].elementsEqual(blank) { return index + 4 }
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

    private static func field(_ line: String) throws -> (name: String, value: String) {
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

    /// Takes chunks up to the last one, then the trailer section.
    private func takeChunks() throws -> (body: [UInt8], trailers: [(name: String, value: String)]) {
        var body: [UInt8] = []
        while true {
            let line = try takeLine()
            guard !line.isEmpty, line.allSatisfy(\.isHexDigit), let size = Int(line, radix: 16)
            else { throw WireFault.malformed("chunk size \(line.debugDescription)") }
            guard size > 0 else { break }
            body += try take(size)
            guard try take(2) == [13, 10] else { throw WireFault.malformed("end of a chunk") }
        }
        var trailers: [(name: String, value: String)] = []
        while true {
            let line = try takeLine()
            guard !line.isEmpty else { return (body, trailers) }
            trailers.append(try Self.field(line))
        }
    }

    /// Reads one response, an interim one too.
    package func readResponse(to method: String = "GET") throws -> WireResponse {
        let head = try readHead()
        let parts = head.startLine.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[0] == "HTTP/1.1", parts[1].count == 3,
            let status = Int(parts[1])
        else { throw WireFault.malformed("status line \(head.startLine.debugDescription)") }
        var response = WireResponse(head: head, status: status)
        if method == "HEAD" || status < 200 || status == 204 || status == 304 { return response }
        if head.has("transfer-encoding") {
            guard head.value("transfer-encoding") == "chunked", !head.has("content-length") else {
                throw WireFault.malformed("framing of a response")
            }
            (response.body, response.trailers) = try takeChunks()
        } else if head.has("content-length") {
            guard let length = head.value("content-length").flatMap({ Int($0) }) else {
                throw WireFault.malformed("Content-Length of a response")
            }
            response.body = try take(length)
        } else {
            response.isUntilClose = true
            response.body = try readToEnd()
        }
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
        let head = request.head
        if head.has("transfer-encoding") {
            guard head.value("transfer-encoding") == "chunked", !head.has("content-length") else {
                throw WireFault.malformed("framing of a request")
            }
            (request.body, request.trailers) = try takeChunks()
        } else if head.has("content-length") {
            guard let length = head.value("content-length").flatMap({ Int($0) }) else {
                throw WireFault.malformed("Content-Length of a request")
            }
            request.body = try take(length)
        }
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
