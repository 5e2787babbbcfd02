package import HTTPWire

/// The bounds of what a server may send.
package final class ResponseLimits: Sendable {
    /// Bounds of the head, and of the framing of content.
    package let head: HeadLimits
    /// Interim (1xx) responses to one request.
    package let interimMax: Int

    /// Those of a connection that carries no request.
    static let none = ResponseLimits(head: HeadLimits(), interimMax: 0)

    package init(head: HeadLimits, interimMax: Int) {
        self.head = head
        self.interimMax = interimMax
    }
}
