/// A place for one request at a time and its answer: a connection of HTTP/1.1, or one of the
/// streams that a connection of HTTP/2 may have open together.
final class LoadExchange {
    let pool: ConnectionPool
    /// The connection, or its part. It outlives every use: it takes the exchange out of the pool
    /// before it goes.
    private unowned let carrier: any ExchangeCarrier
    /// The current request.
    private(set) var message = Message()
    private(set) var request = LoadRequest()
    var answer = Answer()
    /// Whether another request may follow.
    var isUsable = true

    init(on carrier: any ExchangeCarrier, in pool: ConnectionPool) {
        self.carrier = carrier
        self.pool = pool
    }

    /// Sends a message; the owner of the pool gets the answer or the reason why none came.
    func send(_ message: Message, for request: LoadRequest) {
        (self.message, self.request) = (message, request)
        answer.clear()
        carrier.send(self)
    }

    /// Ends the connection.
    func close() { carrier.close() }
}

/// A connection, or the part of one, that sends the requests of an exchange.
protocol ExchangeCarrier: AnyObject {
    /// Sends the exchange's message. It reports no result before it returns.
    func send(_ exchange: LoadExchange)
    func close()
}

/// The user of a pool of connections.
protocol ConnectionOwner: AnyObject {
    /// The answer to the exchange's request is complete.
    func answered(_ exchange: LoadExchange)
    /// A request, or an attempt to connect, has failed.
    ///
    /// - exchange: `nil` for an attempt to connect.
    func failed(_ exchange: LoadExchange?, _ failure: ExchangeFailure, in pool: ConnectionPool)
    /// An exchange may be free now.
    func work()
}
