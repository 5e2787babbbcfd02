import HTTPWire
import KeyStore
import Services
import Verification

extension Flow {
    /// The driver's next action.
    enum Action: Equatable, Sendable {
        case none
        /// Judges the head again, which was kept while the store was asked for its key. Then
        /// `judged` or `contentAwaited`.
        case judgeHead

        // The client's content.

        /// Reads content for a service. First sends `100 Continue` where the client waits for it.
        case collect
        /// Reads content and holds it. First sends `100 Continue` where the client waits for it.
        case hold
        /// Reads content for the server. First sends `100 Continue` where the client waits for it.
        case stream
        case readContent
        /// Reads content whose end alone matters. First drops what is held, and sends `100
        /// Continue` where the client waits for it.
        case skim
        /// Starts the client's time for its content.
        case awaitContent
        /// Asks the service. Then `served`.
        case serve
        /// Asks for the verdict about the held content. Then `judged`.
        case judgeContent
        /// Compares the content with the digest that the head states, and looks the key up again.
        /// Then `endJudged`.
        case judgeEnd

        // To the origin.

        /// Waits for a commit. Then `committed`.
        case awaitCommit(CommitTicket)
        /// Asks another party about the request. Then `answered`, or `queryTimedOut`.
        case ask(RequestQuery)
        /// Tells the origin the verdict, and counts it. Then as `connect`.
        case admit
        /// Tells the origin the verdict about released content. It was counted when it changed. The
        /// head gets the client's framing. Then as `connect`.
        case release
        /// Connects to a server, and to the next one if that fails. Then `connected` or
        /// `connectFailed`.
        case connect(Attempt)
        /// Releases the connection and connects once more.
        case retry(Leg.Retry, Release, Attempt)
        /// Sends the head, with this number of held bytes. Then `headSent` or `writeFailed`.
        case sendHead(heldBytes: UInt64, Leg.ConnectionEnd)
        /// Sends held content, from an offset. Then `heldSent` or `writeFailed`.
        case sendHeld(from: UInt64)
        /// Ends released content, where its framing has an end. Then `contentSent`.
        case endHeld
        /// Releases held content, and continues to read for the server.
        case streamOn
        /// Sends the bytes that were read. After the last of them `contentSent`; or `writeFailed`.
        case sendContent(Piece)
        /// Waits for the response. The connection may end in order from here, if all bytes are
        /// sent.
        case awaitResponse(Output, Leg.HeldContent)
        /// Ends the request where the response has begun. There is no wait.
        case endRequest(Output, Leg.HeldContent)
        /// Reads the bytes that the server sent before its connection broke. Then `lastWordsRead`.
        case readLastWords
        /// Continues to wait: the client does not take its bytes.
        case awaitOrigin

        // The response.

        /// Forwards the response.
        case relay(Leg.ResponseStart, Leg.HeldContent)
        /// Makes a tunnel of both connections. Then `tunnelBegan`.
        case beginTunnel

        // Endings.

        /// Answers. `ClientFate` says what happens to the rest of the request.
        case answer(Reply, Release, ClientFate)
        /// The response is complete.
        case finish(Release)
        /// The response can't be completed, and the client must see that.
        case cutOff(Reply, Release)
        /// The client is gone.
        case end(Release)
    }
}

/// Why the gateway answers a request itself, or cuts its response off.
///
/// A table outside of the machine has the status, the text and the metric of each.
enum Reply: Equatable, Sendable {
    /// The verdict about the request. It is counted with the rule's verdicts.
    case refused(Refusal)
    /// A limit or a failure, without a verdict.
    case declined(Refusal)
    /// The request can't be read, or has several interpretations.
    case malformed(Malformed.Reason)
    /// No server took the request.
    case unreached(OriginFailure)
    /// The server with the request failed, before its response began or in the middle of it.
    case failed(OriginFailure)
    /// The content did not come, or came too slowly.
    case contentTimeout
    /// The request has passed here before (RFC 9110 §7.6: a gateway must not send a request to
    /// itself for ever).
    case loopDetected
    /// An OPTIONS request ends here (RFC 9110 §7.6.2).
    case lastHop
    /// The answer of a service.
    case service
    /// The proxy that has asked may forward the request.
    case allowed
}

/// What happens to the client's connection.
enum ClientFate: Equatable, Sendable {
    /// All of the request was read: another may follow.
    case goesOn
    /// Content was not read. If all of it is here, or a little is on its way, it is dropped, and
    /// another request may follow; otherwise as `lingers`.
    case skips
    /// The rest of the request is read and discarded for a bounded time, or the connection ends.
    case lingers
}
