import KeyStore

extension Flow {
    /// What the driver does next.
    enum Action: Equatable, Sendable {
        case none
        /// Judges the head again, which was kept while the store was asked for its key. Then
        /// `ruled` or `contentAwaited`.
        case judgeHead

        // The client's content.

        /// Reads content for a service. Says `100 Continue` first where the client waits for it.
        case collect
        /// Reads content and holds it. Says `100 Continue` first where the client waits for it.
        case hold
        /// Reads content for the server. Says `100 Continue` first where the client waits for it.
        case stream
        case readContent
        /// Gives the client time for its content from now on.
        case awaitContent
        /// Asks the service. Then `served`.
        case serve
        /// Asks for the verdict about the content that is held. Then `ruled`.
        case judgeContent
        /// Compares the content with the digest that the head states, and looks the key up again.
        /// Then `endJudged`.
        case judgeEnd

        // To the origin.

        /// Waits for a commit. Then `committed`.
        case awaitCommit(CommitTicket)
        /// Asks what Apple says of the device. Then `deviceAnswered`.
        case askDevice
        /// Tells the origin the verdict, and counts it. Then as `connect`.
        case admit
        /// Tells the origin the verdict about content that is released, which was counted when it
        /// changed. The head gets the framing that the client uses. Then as `connect`.
        case release
        /// Connects to a server, one after the other if need be. Then `connected` or
        /// `connectFailed`.
        case connect(Attempt)
        /// Lets go of the connection and connects once more.
        case retry(Leg.Retry, Release, Attempt)
        /// Sends the head, with so many of the bytes that are held. Then `headSent` or
        /// `writeFailed`.
        case sendHead(heldBytes: UInt64, Leg.ConnectionEnd)
        /// Sends content that is held, from an offset. Then `heldSent` or `writeFailed`.
        case sendHeld(from: UInt64)
        /// Ends content that was released, where its framing has an end. Then `contentSent`.
        case endHeld
        /// Lets go of content that is held, and reads on for the server.
        case streamOn
        /// Sends what was read. After the last of it `contentSent`; or `writeFailed`.
        case sendContent(Piece)
        /// Waits for the response. The connection may end in order from here, if all is sent.
        case awaitResponse(Output, Leg.HeldContent)
        /// The same, where the response has begun: nothing is waited for.
        case endRequest(Output, Leg.HeldContent)
        /// Reads what the server said before its connection broke. Then `lastWordsRead`.
        case readLastWords
        /// Waits on: it is the client that stands still.
        case awaitOrigin

        // The response.

        /// Passes the response on.
        case relay(Leg.ResponseStart, Leg.HeldContent)
        /// Makes a tunnel of both connections. Then `tunnelBegan`.
        case beginTunnel

        // Endings.

        /// Answers. `ClientFate` says what becomes of the rest of the request.
        case answer(Reply, Release, ClientFate)
        /// The response is complete.
        case finish(Release)
        /// The response can't be completed, and the client must see that.
        case cutOff(Reply, Release)
        /// The client is gone.
        case end(Release)
    }

    /// Which part of streamed content is sent.
    enum Piece: Equatable, Sendable { case more, last }

    /// What becomes of a piece of content.
    enum Take: Equatable, Sendable {
        /// It is collected for a service.
        case collect
        /// It is held. Then maybe `holdFailed`.
        case hold
        /// It follows what is held and is not held itself.
        case append
        /// It goes to the server.
        case send
        /// It goes to the server and is hashed.
        case sendHashed
        /// It is hashed, compared with the digest that the head states, and the key is looked up
        /// again. Then `endJudged`.
        case judgeEnd
        /// It is dropped, and what follows too.
        case stop(Action)
    }
}
