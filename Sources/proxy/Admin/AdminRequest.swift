import HTTPWire

/// What is left of a request once its head was read.
struct AdminRequest {
    enum Outcome: Equatable {
        case page(AdminPage)
        case refused(AdminProblem)
    }

    /// `nil` when there is no such page.
    let page: AdminPage?
    let method: Method
    /// Whether content follows the head. None is ever read, so the connection ends.
    let hasContent: Bool
    /// What the answer says of the connection.
    let connection: HeadWriter.ConnectionField

    init(_ head: borrowing RequestHead, _ octets: Span<UInt8>) {
        page = AdminPage(octets, head.path)
        method = head.method
        hasContent = head.framing != .none && head.framing != .length(0)
        if hasContent || !head.isPersistent {
            connection = .close
        } else {
            connection = head.version == .http10 ? .keepAlive : .keep
        }
    }

    var isHead: Bool { method == .head }

    /// The page to show, or why there is none: path, method, content, in this order.
    var outcome: Outcome {
        guard let page else { return .refused(.pageUnknown) }
        guard method == .get || method == .head else { return .refused(.methodRefused) }
        return hasContent ? .refused(.contentRefused) : .page(page)
    }
}
