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
//   TokenParties, TokenCallSettings  the parties that know tokens, and the limits of calls to them
//   UsedTokens                    tokens of clients, each of which is good for one request
//   Apple, Google, Siteverify     what is asked of each party, and what its answers mean
//
// The way of a call: it is handed in, waits in the line of its host until the rate and the number
// of concurrent calls allow it, is written by its party, and is sent. After an answer 401 the party
// may write it again, once, with a new pass. There is no other retry here: only the caller knows
// whether one is right.
//
// `Gateway/CallClient` performs the decisions: it owns queue, clock and connections.

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
