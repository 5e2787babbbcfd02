package import HTTPWire

/// The bounds of what a server may send.
package final class ResponseLimits: Sendable {
    /// Bounds of the head, and of the framing of content.
    package let head: HeadLimits
    /// Interim (1xx) responses to one request.
    package let interimMax: Int

    package init(head: HeadLimits, interimMax: Int) {
        self.head = head
        self.interimMax = interimMax
    }
}
