package import OutboundCalls

/// One question to the service of a proof, about a token that no service has made: whether the
/// proof would work.
///
/// A service that works, and that accepts the secret or the service account, refuses the token.
package struct PartyTrial: Sendable {
    /// What the answer means for the operator.
    package enum Finding: Sendable {
        case ok(String)
        case warning(String, next: String)
        case error(String, next: String)
    }

    /// Asks once. What is found comes once, on any thread.
    package typealias Asking = @Sendable (_ found: @escaping @Sendable (Finding) -> Void) -> Void

    static let token = Array("portcullis-doctor".utf8)
    /// The next step where a service can't be asked, and nothing better is known.
    static let seeDown = "portcullis help PortcullisTestServiceDown"

    let transport: any HTTPSSending
    /// An Android app of the configuration; empty without one.
    let androidApp: String
    /// Seconds since 1970.
    let now: Int64

    package init(_ transport: any HTTPSSending, androidApp: String, now: Int64) {
        (self.transport, self.androidApp, self.now) = (transport, androidApp, now)
    }

    /// Sends a call as a party writes it.
    func send<Party: CalledParty>(
        _ call: Party.Call,
        of party: Party,
        within timeout: Duration,
        _ done: @escaping @Sendable (CallReply) -> Void
    ) {
        var party = party
        var request = HTTPSRequest(party.written(call, at: now))
        request.timeout = timeout
        transport.send(request) { done(CallReply($0)) }
    }
}
