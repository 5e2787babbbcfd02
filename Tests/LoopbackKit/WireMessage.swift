/// The head of a message as a test reads it: a reader of its own, strict and simple, which shares
/// nothing with the gateway's.
package struct WireHead {
    package typealias Field = (name: String, value: String)

    package let startLine: String
    package let fields: [Field]

    package init(startLine: String, fields: [Field]) {
        self.startLine = startLine
        self.fields = fields
    }

    /// The values of all lines of this name, case aside.
    package func all(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// The value of the only line of this name.
    package func value(_ name: String) -> String? {
        let values = all(name)
        return values.count == 1 ? values[0] : nil
    }

    package func has(_ name: String) -> Bool { !all(name).isEmpty }

    /// The status of a response.
    package func status() throws -> Int {
        let parts = startLine.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[0] == "HTTP/1.1", parts[1].count == 3,
            let status = Int(parts[1])
        else { throw WireFault.malformed("status line \(startLine.debugDescription)") }
        return status
    }

    /// What a message is, which says what content without a length means.
    package enum Kind { case request, response }

    /// How content is delimited.
    enum Framing: Equatable { case none, length(Int), chunked, untilClose }

    func framing(in kind: Kind) throws -> Framing {
        if has("transfer-encoding") {
            guard value("transfer-encoding") == "chunked", !has("content-length") else {
                throw WireFault.malformed("framing of a \(kind)")
            }
            return .chunked
        }
        guard has("content-length") else { return kind == .request ? .none : .untilClose }
        guard let length = value("content-length").flatMap({ Int($0) }) else {
            throw WireFault.malformed("Content-Length of a \(kind)")
        }
        return .length(length)
    }
}

package struct WireResponse {
    package let head: WireHead
    package let status: Int
    package var body: [UInt8] = []
    package var trailers: [WireHead.Field] = []
    /// Whether its end was the connection's.
    package var isUntilClose = false

    package init(head: WireHead, status: Int) {
        self.head = head
        self.status = status
    }

    package var text: String { String(decoding: body, as: UTF8.self) }
}

package struct WireRequest {
    package let head: WireHead
    package let method: String
    package let target: String
    package var body: [UInt8] = []
    package var trailers: [WireHead.Field] = []
}
