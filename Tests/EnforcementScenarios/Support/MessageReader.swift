import Foundation

/// Reads HTTP/1 messages off a socket, simply: for what well-behaved parties send.
final class MessageReader {
    struct Head {
        let startLine: String
        let fields: [(name: String, value: String)]

        func all(_ name: String) -> [String] {
            fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        }

        func value(_ name: String) -> String? { all(name).first }
    }

    let socket: Socket
    private var buffer: [UInt8] = []
    private var isAtEnd = false

    init(_ socket: Socket) { self.socket = socket }

    /// Reads more; false at the end.
    private func fill() throws -> Bool {
        guard !isAtEnd else { return false }
        let octets = try socket.receive()
        isAtEnd = octets.isEmpty
        buffer += octets
        return !isAtEnd
    }

    private func line() throws -> String? {
        while true {
            if let end = buffer.firstIndex(of: 0x0A) {
                let text = String(decoding: buffer[..<end].dropLast(), as: UTF8.self)
                buffer.removeFirst(end + 1)
                return text
            }
            guard try fill() else { return nil }
        }
    }

    /// The next head; `nil` at the end.
    func head() throws -> Head? {
        guard let start = try line() else { return nil }
        var fields: [(name: String, value: String)] = []
        while let text = try line() {
            guard !text.isEmpty else { return Head(startLine: start, fields: fields) }
            let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count == 2 ? String(parts[1]) : ""
            fields.append((String(parts[0]), value.trimmingCharacters(in: .whitespaces)))
        }
        return nil
    }

    /// Gives the content piece by piece.
    ///
    /// - Returns: whether it was complete.
    func content(of head: Head, untilEnd: Bool, _ body: (ArraySlice<UInt8>) -> Void) throws -> Bool
    {
        if head.value("Transfer-Encoding")?.lowercased() == "chunked" {
            while let size = try line() {
                guard let count = Int(size.prefix { $0 != ";" }, radix: 16) else { return false }
                guard count > 0 else {
                    while let trailer = try line() { if trailer.isEmpty { return true } }
                    return false
                }
                guard try take(count, body), try line() != nil else { return false }
            }
            return false
        }
        if let length = head.value("Content-Length").flatMap({ Int($0) }) {
            return try take(length, body)
        }
        guard untilEnd else { return true }
        repeat {
            if !buffer.isEmpty { body(buffer[...]) }
            buffer = []
        } while try fill()
        return true
    }

    private func take(_ count: Int, _ body: (ArraySlice<UInt8>) -> Void) throws -> Bool {
        var left = count
        while left > 0 {
            if buffer.isEmpty, try !fill() { return false }
            let piece = buffer.prefix(left)
            body(piece)
            left -= piece.count
            buffer.removeFirst(piece.count)
        }
        return true
    }
}
