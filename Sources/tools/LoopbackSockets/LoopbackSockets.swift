// HTTP/1.1 over blocking sockets, for the proving ground of clients.
//
//   Socket          a TCP socket whose waits have a limit
//   MessageReader   heads and contents off a socket, read as the gateway reads them
//   ToolError       why a tool can't go on
//
// A thread for each connection is enough for a tool. Nothing here is linked into `portcullis`.

/// Why a tool can't go on.
package struct ToolError: Error, CustomStringConvertible {
    package let text: String

    package init(_ text: String) { self.text = text }

    package var description: String { text }
}

/// Fields of a message, in their order.
enum LoopbackFields {
    /// The value of the first field of this name, whatever its case (RFC 9110 §5.1).
    static func first(_ name: String, of fields: [(name: String, value: String)]) -> String? {
        let name = name.lowercased()
        return fields.first { $0.name.lowercased() == name }?.value
    }
}
