#if canImport(FoundationNetworking)
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// An answer whose head has come.
public struct TransportAnswer: Sendable {
    /// Where an answer comes from.
    public enum Source: Hashable, Sendable {
        /// The server, for this request.
        case network
        /// A cache of this device. What the gateway said in it is not obeyed.
        case cache
    }

    /// The head.
    public let response: HTTPURLResponse
    /// The content, as it comes.
    public let content: AnswerContent
    /// Where it comes from.
    public let source: Source

    /// An answer.
    public init(
        response: HTTPURLResponse,
        content: AnswerContent,
        source: Source = .network
    ) {
        (self.response, self.content, self.source) = (response, content, source)
    }
}
