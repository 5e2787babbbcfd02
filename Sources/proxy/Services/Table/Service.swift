package import HTTPWire
package import Signatures
package import Telemetry
package import Verification

/// Something that the gateway answers itself. Shared by event loops.
package protocol Service: Sendable {
    func answer(_ request: ServiceRequest) -> ServiceAnswer
}

/// What a service gets of a request that the ``ServiceTable`` gave to it.
package struct ServiceRequest: Sendable {
    /// The request's content, no more than its entry takes.
    package var content: [UInt8]
    /// What the request has proved, where the entry has a rule.
    package var grant: SessionGrant?
    /// The wall clock.
    package var now: UnixTime
    /// Nanoseconds of a clock that never goes back.
    package var tick: UInt64
    /// What the client asks for, where the answer can be metrics.
    package var format = Exposition.Format.prometheus
    /// The client's address.
    package var address: IPAddress
    /// Who calls, where its entry says so: `uid 1000` over a Unix socket, else the address.
    package var caller = ""
    /// The place of that address among the limits; `nil` where none apply.
    package var entry: AddressEntry?
    /// Nanoseconds until something may be verified for the address; `nil` when it may be now, or
    /// the service verifies nothing.
    package var verificationWait: UInt64?

    package init(
        content: [UInt8] = [],
        grant: SessionGrant? = nil,
        now: UnixTime,
        tick: UInt64,
        address: IPAddress = .v4(0)
    ) {
        self.content = content
        self.grant = grant
        self.now = now
        self.tick = tick
        self.address = address
    }
}

/// The answer of a service.
package enum ServiceAnswer: Sendable {
    case now(ServiceResult)
    /// Another party has to be asked first, for a time that the service bounds.
    case later(PendingAnswer)
    /// Something has to be stored first. The caller bounds the time: an answer that comes later is
    /// dropped, and what was stored stands.
    case afterCommit(PendingAnswer)
}

/// A response, and what it costs.
package struct ServiceResult: Sendable {
    package let response: LocalResponse
    /// Calls that the client's address owes beyond the one that it has made.
    package var callsOwed = 0
    /// Whether something was verified for the client's address, in vain.
    package var verifiedInVain = false
    /// What else is counted, and how many times.
    package var counter: Counter?
    package var countedTimes: UInt64 = 1

    package init(_ response: LocalResponse) { self.response = response }

    package init(_ outcome: LocalOutcome) { self.init(LocalResponse(outcome)) }
}

/// Begins to make an answer, which is handed over once, on any thread.
package typealias PendingAnswer = @Sendable (@escaping @Sendable (ServiceResult) -> Void) -> Void
