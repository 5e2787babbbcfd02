import Encodings

/// The answer to a call.
struct Answer {
    let status: Int
    /// The status line's words.
    let phrase: String
    let content: [UInt8]
    private let head: MessageReader.Head

    /// Reads an answer off a connection.
    init(_ reader: MessageReader) throws(DemoError) {
        guard let head = try reader.head() else {
            throw DemoError("the connection ended without an answer")
        }
        let words = head.line.split(separator: " ", maxSplits: 2)
        guard words.count >= 2, let status = Int(words[1]) else {
            throw DemoError("no status line: \(head.line)")
        }
        var content: [UInt8] = []
        guard try reader.content(of: head, { content += $0 }) else {
            throw DemoError("the answer broke off")
        }
        self.head = head
        self.status = status
        self.content = content
        phrase = words.count > 2 ? String(words[2]) : ""
    }

    /// A string member of a problem document; `nil` for other contents.
    func problem(_ name: String) -> String? {
        guard self["Content-Type"] == "application/problem+json" else { return nil }
        return json("/" + name)
    }

    /// The string at a place of a JSON document.
    func json(_ pointer: String) -> String? {
        JSONPointer(pointer)?.string(in: content.span).map { String(decoding: $0, as: UTF8.self) }
    }

    /// A field's value.
    subscript(name: String) -> String? { head[name] }

    var challenge: String? { self["App-Attest-Challenge"] }

    var text: String { String(decoding: content, as: UTF8.self) }
}
