public import Foundation

/// The content of a request, in a form that can be sent again.
public enum RequestContent: Hashable, Sendable {
    /// No content.
    case none
    /// Content in memory.
    case data(Data)
    /// Content in a file, sent in pieces.
    case file(URL)
}
