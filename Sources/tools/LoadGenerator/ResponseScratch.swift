import HTTPWire

/// What all connections of a lane read heads into.
final class ResponseScratch {
    var head = ResponseHead()
    let limits = HeadLimits()
    /// Of the requests: an answer to HEAD has no content.
    let method: HTTPWire.Method

    init(method: String) { self.method = method == "HEAD" ? .head : .other }
}
