import Encodings
package import HTTPWire
package import Rules
package import Signatures
package import Telemetry
package import Verification

// The requests that the gateway answers itself, without an origin.
//
//   LocalOutcome    why the gateway answers itself: refused, notEnrolled, malformed, failed, fault,
//                   done. Its LocalRow has the status and all that follows; that of a refusal is
//                   in Verification
//   LocalResponse   the message that an outcome becomes; App-Attest-Error says that it is ours
//   ServiceTable    which paths the gateway answers itself, and by which service
//   Service         answers a request, at once or later
//   OperatorGate    who may ask for what on the operators' listener
//   DashboardPage   what that listener shows in a browser; its files are in Page
//   ReportCounts    what an event loop has counted for the report; ReportLedger has the sums of all
//                   event loops, and Report is what an operator reads of them
//   RefusalMemory   the refusals that were last, in bounded memory, for `portcullis why`
//
// The public listeners have ChallengeService and KeyService, under the path that the configuration
// names, and ProbeService at the paths of its probes. The operators' listener has OperatorService:
// metrics, status and probes. Every page for operators is made from one AdminSnapshot, so that
// pages can't disagree.
//
// No call site chooses a status: it names an outcome, and the table has the rest. No code decides
// by a status in an answer.
//
// Pure: no socket, no clock, no lock. A service that has to wait says so (``ServiceAnswer``), and
// its caller waits.

/// A service that the gateway answers itself. Shared by event loops.
package protocol Service: Sendable {
    func answer(_ request: ServiceRequest) -> ServiceAnswer
}

/// The data of a request that the ``ServiceTable`` gave to a service.
package struct ServiceRequest: Sendable {
    /// The request's content, up to the limit of its entry.
    package var content: [UInt8]
    /// The proof of the request, where the entry has a rule.
    package var grant: SessionGrant?
    /// The wall clock.
    package var now: UnixTime
    /// Nanoseconds of a clock that never goes back.
    package var tick: UInt64
    /// The format that the client accepts, where the answer can be metrics.
    package var format = Exposition.Format.prometheus
    /// The gateway of a fleet that the query names, in `?gateway=NAME`; `nil` for all of them.
    package var gateway: String?
    /// The client's address.
    package var address: IPAddress
    /// The caller, where its entry asks for it: `uid 1000` over a Unix socket, else the address.
    package var caller = ""
    /// The place of that address among the limits; `nil` where none apply.
    package var entry: AddressEntry?
    /// Nanoseconds until the gateway may verify for the address; `nil` when it may now, or the
    /// service verifies nothing.
    package var verificationWait: UInt64?
    /// The tokens of ``ServiceEntry/tokens``, where the request shows them.
    package var tokens: [TokenProof: ShownTokens.Showing] = [:]
    /// Who checks tokens, by the index of the proof.
    package var tokenChecks: [any TokenChecker] = []

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
    /// The answer depends on another party, for a time that the service bounds.
    case later(PendingAnswer)
    /// The answer depends on a commit. The caller bounds the time: a later answer is dropped, and
    /// the stored data stay.
    case afterCommit(PendingAnswer)
}

/// A response, and its cost.
package struct ServiceResult: Sendable {
    package let response: LocalResponse
    /// Calls that the client's address owes beyond this one.
    package var callsOwed = 0
    /// Whether a verification for the client's address has failed.
    package var verifiedInVain = false
    /// A further counter, and its increment.
    package var counter: Counter?
    package var countedTimes: UInt64 = 1
    /// What was found of an integrity token; `nil` where none was asked for.
    package var integrity: IntegrityNote?

    package init(_ response: LocalResponse) { self.response = response }

    /// Whether the service has done what it was asked for.
    package var passes: Bool { response.outcome.row.status < 400 }

    package init(_ outcome: LocalOutcome) { self.init(LocalResponse(outcome)) }
}

extension ServiceResult {
    /// Text for people.
    init(text: String) {
        self.init(LocalResponse(.served, as: "text/plain; charset=utf-8", Array(text.utf8)))
    }

    init(json document: [UInt8]) {
        self.init(LocalResponse(.served, as: "application/json", document))
    }

    /// An object of JSON, in one line.
    init(json success: LocalSuccess, _ fill: (inout JSONWriter) -> Void) {
        var document = JSONWriter(.compact)
        document.object(nil, fill)
        self.init(LocalResponse(success, as: "application/json", document.line))
    }

    /// A problem, with a list of texts in its document.
    init(_ outcome: LocalOutcome, _ name: String, texts: [String]) {
        var details = LocalResponse.Details()
        details.list = (name, texts)
        self.init(LocalResponse(outcome, details))
    }
}

/// Begins to make an answer, which is delivered once, on any thread.
package typealias PendingAnswer = @Sendable (@escaping @Sendable (ServiceResult) -> Void) -> Void
