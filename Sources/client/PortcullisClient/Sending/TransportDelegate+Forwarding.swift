import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

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
        func answersItself(
            _ challenge: URLAuthenticationChallenge,
            of task: URLSessionTask,
            _ session: URLSession,
            _ completionHandler:
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
