public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// Reports how much of a request's content was sent, as a delegate of its tasks:
///
/// ```swift
/// let progress = TransferProgress { print($0.sent, $0.total ?? 0) }
/// let (data, answer) = try await session.upload(for: request, fromFile: file, delegate: progress)
/// ```
///
/// A request that is sent again, because its proof was refused or it was redirected, begins at zero
/// again.
public final class TransferProgress: NSObject, URLSessionTaskDelegate {
    /// How much was sent, in bytes.
    public struct Amount: Hashable, Sendable {
        /// How much of this try was sent.
        public let sent: Int64
        /// How much there is; `nil` where that is not known.
        public let total: Int64?
    }

    private let report: @Sendable (Amount) -> Void

    /// - Parameter report: called on a queue of URLSession's. It must return soon.
    public init(_ report: @escaping @Sendable (Amount) -> Void) { self.report = report }

    /// Hears from URLSession.
    public func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        let total = totalBytesExpectedToSend >= 0 ? totalBytesExpectedToSend : nil
        report(Amount(sent: totalBytesSent, total: total))
    }
}
