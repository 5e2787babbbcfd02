/// The user of a connection: gets its events.
protocol ConnectionOwner: AnyObject {
    var scratch: ResponseScratch { get }
    /// It may be used from now on.
    func connected(_ connection: LoadConnection)
    /// The answer is complete; the connection is idle again, or closed.
    func answered(_ connection: LoadConnection)
    /// It is closed; what it carried or was being made for has failed.
    func failed(_ connection: LoadConnection, _ failure: ExchangeFailure)
    /// It was idle, and the server has closed it.
    func retired(_ connection: LoadConnection)
}
