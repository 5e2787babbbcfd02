import Dispatch
public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// Hears what a URLSession does, and tells the exchange that it is about.
final class TransportDelegate: NSObject, URLSessionDataDelegate {
    private struct Watched {
        let exchange: TransportExchange
        /// The app's.
        let delegate: (any URLSessionTaskDelegate)?
    }

    private let authentication: URLSessionTransport.Authentication?
    /// Where the app's delegates are called; `nil` for where this one is.
    private let forwarding: DispatchQueue?
    /// By the number that URLSession gives each task.
    private let exchanges = Guarded<[Int: Watched]>([:])

    init(_ authentication: URLSessionTransport.Authentication?, forwarding: DispatchQueue? = nil) {
        (self.authentication, self.forwarding) = (authentication, forwarding)
    }

    /// Calls the app's delegate, where it may do as it likes.
    private func forward(_ call: @escaping @Sendable () -> Void) {
        if let forwarding { forwarding.async(execute: call) } else { call() }
    }

    func add(
        _ exchange: TransportExchange,
        of task: URLSessionTask,
        _ delegate: (any URLSessionTaskDelegate)? = nil
    ) {
        let number = task.taskIdentifier
        exchanges.withLock { $0[number] = Watched(exchange: exchange, delegate: delegate) }
    }

    /// The app's delegate of a task.
    private func delegate(of task: URLSessionTask) -> (any URLSessionTaskDelegate)? {
        let number = task.taskIdentifier
        return exchanges.withLock { $0[number]?.delegate }
    }

    private func exchange(_ task: URLSessionTask) -> TransportExchange? {
        let number = task.taskIdentifier
        return exchanges.withLock { $0[number]?.exchange }
    }

    /// Redirects are not followed here. On some systems such a task hangs until its time
    /// is over (rdar 19860450), hence the answer is complete without its content.
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        exchange(task)?.received(response)
        exchange(task)?.end(.success(()))
        #if canImport(FoundationNetworking)
            // Foundation ends the process if its question is answered after the task was cancelled,
            // or its time was over ("Received callback for HTTP redirection, but we're not waiting
            // for it"). `cancel()` waits for the queue on which a download is written.
            forward { task.cancel() }
        #else
            completionHandler(nil)
        #endif
    }

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        guard let response = response as? HTTPURLResponse else {
            exchange(dataTask)?.end(.failure(PortcullisError.answerUnfit))
            return completionHandler(.cancel)
        }
        exchange(dataTask)?.received(response)
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchange(dataTask)?.received(data)
    }

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        completionHandler(CachedAnswer.kept(proposedResponse))
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didCompleteWithError error: (any Error)?
    ) {
        let number = task.taskIdentifier
        guard let watched = exchanges.withLock({ $0.removeValue(forKey: number) }) else { return }
        let error = watched.exchange.taskEnded(error)
        guard let delegate = watched.delegate else { return }
        forward {
            #if canImport(FoundationNetworking)
                delegate.urlSession(session, task: task, didCompleteWithError: error)
            #else
                delegate.urlSession?(session, task: task, didCompleteWithError: error)
            #endif
        }
    }

    /// Hears of every challenge: without a method for those of the session, they come here too.
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(FoundationNetworking)
            // Told to do what is usual, it lets a 401 for `Basic` hang. The answer is there.
            if authentication == nil {
                exchange(task)?.end(.success(()))
                // It cancels the task, which waits for the queue on which a download is written.
                return forward { completionHandler(.rejectProtectionSpace, nil) }
            }
        #else
            if answersItself(challenge, of: task, in: session, by: completionHandler) { return }
        #endif
        guard let authentication else { return completionHandler(.performDefaultHandling, nil) }
        Task {
            let (disposition, credential) = await authentication(challenge)
            completionHandler(disposition, credential)
        }
    }
}

// What the app's own delegate of a task hears. It hears of no redirect and of no content: those are
// the client's.
extension TransportDelegate {
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        guard let delegate = delegate(of: task) else { return }
        forward {
            #if canImport(FoundationNetworking)
                delegate.urlSession(
                    session,
                    task: task,
                    didSendBodyData: bytesSent,
                    totalBytesSent: totalBytesSent,
                    totalBytesExpectedToSend: totalBytesExpectedToSend
                )
            #else
                delegate.urlSession?(
                    session,
                    task: task,
                    didSendBodyData: bytesSent,
                    totalBytesSent: totalBytesSent,
                    totalBytesExpectedToSend: totalBytesExpectedToSend
                )
            #endif
        }
    }

    #if !canImport(FoundationNetworking)
        // Foundation on Linux measures nothing, and waits for no network.
        func urlSession(
            _ session: URLSession,
            task: URLSessionTask,
            didFinishCollecting metrics: URLSessionTaskMetrics
        ) {
            delegate(of: task)?.urlSession?(session, task: task, didFinishCollecting: metrics)
        }

        func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
            delegate(of: task)?.urlSession?(session, taskIsWaitingForConnectivity: task)
        }

        /// Whether the app's delegate answers a challenge: one about who the server or the device
        /// is, in the handshake of TLS. An answer to one about a user would have URLSession send
        /// the request again by itself, with a proof that is good once.
        private func answersItself(
            _ challenge: URLAuthenticationChallenge,
            of task: URLSessionTask,
            in session: URLSession,
            by completionHandler:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) -> Bool {
            let ofHandshake = [
                NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate,
            ]
            guard ofHandshake.contains(challenge.protectionSpace.authenticationMethod),
                let answer = delegate(of: task)?
                    .urlSession(_:task:didReceive:completionHandler:)
            else { return false }
            answer(session, task, challenge, completionHandler)
            return true
        }
    #endif
}

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
