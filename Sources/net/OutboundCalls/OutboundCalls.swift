// The gateway's calls to the services of other parties, as values and machines without I/O, clock
// or lock.
//
//   CalledParty, OutboundCall     what a party adds: its calls, its hosts, how a call is written
//   CallQueue                     all calls to a party: waiting ones, those under way, the counts
//   CallLine                      the calls to one host: queue, rate, calls under way
//   CallBreaker, CallOutcome      whether the host is called at all
//   BackOff                       how long what failed is left alone
//   CallRequest                   a call in the form that is sent
//   CallReply, CallFailure        the result, and why there is no answer
//   CallTally, NoticePace         what was counted, and what operators read of it
//   FetchSchedule, FetchedFields  when what is fetched in the background is fetched again
//   FetchedCopy                   its copy on disk
//
// The way of a call: it is handed in, waits in the line of its host until the rate and the number
// of concurrent calls allow it, is written by its party, and is sent. After an answer 401 the party
// may write it again, once, with a new pass. There is no other retry here: only the caller knows
// whether one is right.
//
// `Parties/CallClient` performs the decisions: it owns queue, clock and connections.

/// A call to another party.
package protocol OutboundCall: Sendable {
    /// What has a line, a rate and a breaker of its own. Its order is that of metrics.
    associatedtype Host: Comparable & Hashable & Sendable
    /// What is counted and reported apart.
    associatedtype Kind: Comparable & Hashable & Sendable
    /// What has a histogram of durations of its own.
    associatedtype Family: Hashable & Sendable

    var host: Host { get }
    var kind: Kind { get }
    var family: Family { get }
    /// The time from the hand-in to the reply, including the wait in the queue.
    var timeout: Duration { get }
}

/// A party whose services are called.
package protocol CalledParty: Sendable {
    associatedtype Call: OutboundCall
    associatedtype Settings: Sendable

    init(_ settings: Settings)

    /// The configuration was reloaded. What it leaves unchanged stays good.
    mutating func replace(by settings: Settings)

    /// The limits of the calls to a host; `nil` where the configuration does not have it.
    func limits(of host: Call.Host) -> CallLine.Limits?

    /// Why a call can't be made; `nil` when it can.
    func obstacle(to call: Call) -> CallFailure?

    /// Writes a call without obstacle, which is sent now.
    ///
    /// - wall: seconds since 1970.
    mutating func written(_ call: Call, at wall: Int64) -> CallRequest

    /// The party has answered 401 to this request.
    ///
    /// - Returns: whether the call is written again, with another pass.
    mutating func renews(_ refused: CallRequest, of call: Call) -> Bool
}

/// A call in the form that is sent.
package struct CallRequest: Hashable, Sendable {
    package struct Field: Hashable, Sendable {
        package let name: String
        /// Without line ends. It never belongs into a log.
        package let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package let url: String
    package let fields: [Field]
    package let contentType: String
    /// It never belongs into a log.
    package let content: [UInt8]
    /// The certificates of authorities in PEM, instead of the system's; `nil` for the system's.
    package var roots: [UInt8]?
    /// `http://host:port` of a proxy that supports CONNECT; `nil` for none.
    package var proxy: String?
    /// The longest answer that is accepted.
    package var answerBytesMax = 256 << 10
    /// The rest of the call's time. The queue sets it.
    package internal(set) var timeout = Duration.zero
    /// Whether the last call to the host failed, so that this one does not reuse its connection.
    /// The queue sets it.
    package internal(set) var avoidsOldConnections = false

    package init(url: String, fields: [Field], contentType: String, content: [UInt8]) {
        self.url = url
        self.fields = fields
        self.contentType = contentType
        self.content = content
    }
}

/// The result of a call.
package enum CallReply: Hashable, Sendable {
    /// The party answered. The caller interprets the status.
    ///
    /// - retryAfter: seconds, where the answer names them.
    case answered(status: Int, retryAfter: Int?, body: [UInt8])
    /// No byte left this machine, so the call can be repeated without harm.
    case unsent(CallFailure)
    /// The call was begun, and it is unknown whether the party processed it.
    case failed(CallFailure)
}

extension CallReply {
    /// A reply without its content.
    package enum Summary: Hashable, Sendable {
        case status(Int)
        case unsent(CallFailure)
        case failed(CallFailure)
    }

    package var summary: Summary {
        switch self {
        case .answered(let status, _, _): .status(status)
        case .unsent(let fault): .unsent(fault)
        case .failed(let fault): .failed(fault)
        }
    }

    /// The status of the answer, or the word of the fault: a label of metrics. Its values are
    /// bounded: three digits, or one of ``CallFailure``.
    package var statusText: String {
        switch self {
        case .answered(let status, _, _): (100...999).contains(status) ? String(status) : "other"
        case .unsent(let fault), .failed(let fault): fault.rawValue
        }
    }
}

/// Why a call has no answer. The raw value is a label of metrics and a word of the log.
package enum CallFailure: String, CaseIterable, Hashable, Sendable, Error {
    // No byte was sent.

    /// Nothing proves to the party who calls: no key is configured, none of the call's team, or no
    /// team was named where there are several.
    case noCredential = "no-credential"
    /// No host is configured for the call.
    case noHost = "no-host"
    /// The most calls allowed wait for this host.
    case queueFull = "queue-full"
    /// The call's time ended while it waited for its turn.
    case queueTimeout = "queue-timeout"
    /// The host failed so often that it is in backoff.
    case breakerOpen = "breaker-open"
    /// The gateway is ending.
    case stopping

    // The call was begun.

    /// No name or no connection.
    case unreachable
    /// The handshake failed: most often because of an untrusted certificate.
    case tls
    /// No complete answer in time.
    case timeout
    /// The connection ended before the answer was complete.
    case broken
    /// The answer is longer than any that the party gives.
    case answerTooLong = "answer-too-long"
    /// The answer is not HTTP.
    case garbled
}

/// The meaning of an answer, or of its lack, for the host.
package enum CallOutcome: Hashable, Sendable {
    /// The host works, whatever its verdict about the call.
    case worked
    /// The host, or the way to it, does not work.
    case failed
    /// The host reports too many calls.
    ///
    /// - retryAfter: the time that it asks for, if any.
    case throttled(retryAfter: Duration?)
    /// The call had less time than a working host may need.
    case undecided

    /// A shorter call without an answer says nothing about the host. Otherwise a rule with a short
    /// timeout would decide for all others whether the party is called.
    package static let patienceMin = Duration.seconds(1)

    /// - timeout: the call's time, including its wait in the line.
    /// - Returns: `nil` for a call that was not sent: it says nothing about the host.
    package init?(_ reply: CallReply, timeout: Duration) {
        switch reply {
        case .failed(.timeout) where timeout < Self.patienceMin: self = .undecided
        case .answered(status: 429, let seconds, _):
            self = .throttled(retryAfter: seconds.map { .seconds($0) })
        case .answered(status: 503, let seconds?, _):
            self = .throttled(retryAfter: .seconds(seconds))
        // Consecutive refusals of the token are a fault of the gateway. More calls don't mend it,
        // and the party counts them.
        case .answered(status: 401, _, _), .answered(status: 500..., _, _), .failed: self = .failed
        case .answered: self = .worked
        case .unsent: return nil
        }
    }
}

/// The time of an event, and an unpredictable number: inputs that the machines can't get
/// themselves.
package struct CallMoment: Sendable {
    /// Monotonic nanoseconds.
    package var tick: UInt64
    /// Seconds since 1970.
    package var wall: Int64
    /// Fresh for each moment.
    package var random: UInt64

    package init(tick: UInt64, wall: Int64, random: UInt64) {
        self.tick = tick
        self.wall = wall
        self.random = random
    }
}

/// Limits the reports of many events: one per minute among those that are alike.
package struct NoticePace<Kind: Hashable & Sendable>: Sendable {
    private struct Told {
        var at: UInt64
        var untold: UInt64 = 0
    }

    /// The time without a report of another such event: a minute.
    package static var quietNanoseconds: UInt64 { 60_000_000_000 }

    private var told: [Kind: Told] = [:]

    package init() {}

    /// Whether to report this event: the number of unreported events like it since the last report;
    /// `nil` for no report.
    package mutating func untold(of kind: Kind, now: UInt64) -> UInt64? {
        let untold = told[kind]?.untold ?? 0
        if let last = told[kind], now &- last.at < Self.quietNanoseconds {
            told[kind]?.untold = untold &+ 1
            return nil
        }
        told[kind] = Told(at: now)
        return untold
    }
}
