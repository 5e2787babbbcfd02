/// Reads messages off a socket: heads, then contents by Content-Length or chunks.
///
/// Good enough for two parties that know each other. What a proxy has to beware of is in HTTPWire.
final class MessageReader {
    /// A message's first line and fields.
    struct Head: Sendable {
        let line: String
        let fields: [(name: String, value: String)]

        /// The value of a field's first line.
        subscript(name: String) -> String? {
            fields.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    private let socket: Socket
    private var inbox: [UInt8] = []

    init(_ socket: Socket) { self.socket = socket }

    /// The next head; `nil` when the peer ends before one is complete.
    func head() throws(DemoError) -> Head? {
        var lines: [String] = []
        while let line = try line() {
            if !line.isEmpty {
                lines.append(line)
                continue
            }
            guard let first = lines.first else { return nil }
            let fields = lines.dropFirst().map { line in
                let parts = line.split(separator: ":", maxSplits: 1)
                return (String(parts[0]), String(parts.last ?? "").trimmed)
            }
            return Head(line: first, fields: fields)
        }
        return nil
    }

    /// Reads the content after a head, piece by piece.
    ///
    /// - Returns: whether it came to its end.
    func content(of head: Head, _ take: ([UInt8]) -> Void) throws(DemoError) -> Bool {
        guard head["Transfer-Encoding"]?.lowercased() != "chunked" else {
            return try chunks(take)
        }
        return try octets(head["Content-Length"].flatMap { Int($0) } ?? 0, take)
    }

    private func chunks(_ take: ([UInt8]) -> Void) throws(DemoError) -> Bool {
        while true {
            guard let line = try line(), let size = Int(line, radix: 16) else { return false }
            guard size > 0 else {
                // Trailers, up to the empty line.
                while let trailer = try self.line() { if trailer.isEmpty { return true } }
                return false
            }
            guard try octets(size, take), try self.line() == "" else { return false }
        }
    }

    private func octets(_ count: Int, _ take: ([UInt8]) -> Void) throws(DemoError) -> Bool {
        var left = count
        while left > 0 {
            guard try fill() else { return false }
            let piece = Array(inbox.prefix(left))
            inbox.removeFirst(piece.count)
            left -= piece.count
            take(piece)
        }
        return true
    }

    /// A line without its end.
    private func line() throws(DemoError) -> String? {
        while true {
            if let end = inbox.firstIndex(of: UInt8(ascii: "\n")) {
                let line = inbox[..<end].filter { $0 != UInt8(ascii: "\r") }
                inbox.removeFirst(end + 1)
                return String(decoding: line, as: UTF8.self)
            }
            let more = try socket.read()
            guard !more.isEmpty else { return nil }
            inbox += more
        }
    }

    private func fill() throws(DemoError) -> Bool {
        if inbox.isEmpty { inbox = try socket.read() }
        return !inbox.isEmpty
    }
}

extension String {
    /// Without spaces at both ends.
    fileprivate var trimmed: String {
        var text = drop { $0 == " " }
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
