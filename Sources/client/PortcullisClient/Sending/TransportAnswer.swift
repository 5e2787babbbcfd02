#if canImport(FoundationNetworking)
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// An answer whose head has come.
public struct TransportAnswer: Sendable {
    /// The head.
    public let response: HTTPURLResponse
    /// The content, as it comes.
    public let content: AnswerContent

    /// An answer.
    public init(response: HTTPURLResponse, content: AnswerContent) {
        (self.response, self.content) = (response, content)
    }
}
