package import HTTPWire

/// Reads messages off a socket, heads and then contents, as the gateway does.
package final class MessageReader {
    /// A message's first line and fields.
    package struct Head: Sendable {
        package let line: String
        package let fields: [(name: String, value: String)]
        fileprivate let framing: BodyFraming

        /// The value of a field's first line.
        package subscript(name: String) -> String? {
            LoopbackFields.first(name, of: fields)
        }

        fileprivate init(_ bytes: [UInt8], fields section: FieldSection, framing: BodyFraming) {
            func text(_ range: some RangeExpression<Int>) -> String {
                String(decoding: bytes[range], as: UTF8.self)
            }
            line = text(..<(bytes.firstIndex(of: UInt8(ascii: "\r")) ?? 0))
            fields = section.fields.map { (text($0.name), text($0.value)) }
            self.framing = framing
        }
    }

    private let socket: Socket
    private let subject: HeadScanner.Subject
    private let limits = HeadLimits()
    private var inbox: [UInt8] = []

    /// - subject: whether requests or responses come.
    package init(_ socket: Socket, _ subject: HeadScanner.Subject) {
        self.socket = socket
        self.subject = subject
    }

    /// The next head; `nil` when the peer ends before one is complete.
    ///
    /// - method: of the request that a response answers.
    package func head(answering method: Method = .get) throws(ToolError) -> Head? {
        var scanner = HeadScanner(subject)
        while true {
            let bytes = inbox
            do throws(Malformed) {
                if case .complete(let range) = try scanner.scan(bytes.span, limits: limits) {
                    inbox.removeFirst(range.upperBound)
                    return try head(Array(bytes[range]), answering: method)
                }
            } catch {
                throw ToolError("no message: \(error.reason.rawValue)")
            }
            guard try fill() else { return nil }
        }
    }

    private func head(
        _ bytes: [UInt8],
        answering method: Method
    ) throws(Malformed) -> Head {
        if case .response = subject {
            var head = ResponseHead()
            try head.read(bytes.span, to: method, upgradeSent: false, limits: limits)
            return Head(bytes, fields: head.fields, framing: head.framing)
        }
        var head = RequestHead()
        try head.read(bytes.span, isSecure: false, limits: limits)
        return Head(bytes, fields: head.fields, framing: head.framing)
    }

    /// Reads the content after a head, piece by piece.
    ///
    /// - Returns: whether it came to its end.
    package func content(of head: Head, _ take: ([UInt8]) -> Void) throws(ToolError) -> Bool {
        var body = BodyReader(head.framing, limits: limits)
        while true {
            var position = 0
            let bytes = inbox
            let step: BodyReader.Step
            do throws(Malformed) {
                step = try body.read(bytes.span, from: &position)
            } catch {
                return false
            }
            if case .content(let range) = step { take(Array(bytes[range])) }
            inbox.removeFirst(position)
            if case .finished = step { return true }
            if case .needMore = step, try !fill() { return (try? body.close()) != nil }
        }
    }

    private func fill() throws(ToolError) -> Bool {
        let more = try socket.read()
        inbox += more
        return !more.isEmpty
    }
}
