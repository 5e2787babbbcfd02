import AppAttest
import Cryptography
import HTTPWire
import TLSSession
import Verification

/// The origin's side of a request: the connection to a server or the search for one, and what the
/// log and the metrics tell of it.
struct OriginSide {
    enum Link {
        case none
        /// Servers are tried until one takes a connection.
        case dialing(OriginDial)
        case connected(OriginStream)
    }

    private(set) var link = Link.none
    /// When the head of a response must have come, over all tries: milliseconds of the event loop's
    /// clock; 0 before the first try.
    private(set) var respondBy: UInt64 = 0
    /// When a server took the request, monotonic nanoseconds; of the last attempt.
    private(set) var sentAt: UInt64 = 0
    /// Nanoseconds for which it waited for a place at a server.
    private(set) var queued: UInt64 = 0
    private(set) var servedBy: (server: OriginServer, isReused: Bool)?
    /// The server that was tried last, where none was reached.
    private(set) var lastTried: OriginServer?
    /// Why TLS failed with that server, where it did.
    var tlsFailure: TLSFailure.Reason?
    /// Whose retries it counts with, while it is one.
    private var retried: OriginState?

    /// The connection to the server that has the request.
    var stream: OriginStream? {
        if case .connected(let stream) = link { stream } else { nil }
    }

    /// The first try begins.
    mutating func begin(now: UInt64, milliseconds: UInt64) {
        let (end, overflows) = now.addingReportingOverflow(milliseconds)
        respondBy = overflows ? .max : end
    }

    /// Milliseconds that are left for the head of the response.
    func left(now: UInt64) -> UInt64 { respondBy > now ? respondBy - now : 0 }

    mutating func dials(_ dial: OriginDial) { link = .dialing(dial) }

    /// The dial has ended, and what it was for has not left.
    mutating func dialEnded() {
        if case .dialing(let dial) = leave() { note(dial) }
    }

    /// Remembers how long the request waited for a place at a server.
    mutating func note(_ dial: OriginDial) { queued &+= dial.waited }

    mutating func connected(_ stream: OriginStream, at nanoseconds: UInt64) {
        link = .connected(stream)
        sentAt = nanoseconds
        servedBy = (stream.server, stream.isReused)
    }

    mutating func failed(_ why: Unreached) {
        link = .none
        lastTried = why.server
        if let failure = why.tlsFailure { tlsFailure = failure.reason }
    }

    /// Takes the connection, or the search for one, off the request.
    mutating func leave() -> Link {
        defer { link = .none }
        if case .dialing(let dial) = link { lastTried = dial.lastServer }
        return link
    }

    /// Counts with the retries of an origin, or no more.
    mutating func countRetry(of origin: OriginState?) {
        retried?.retryEnded()
        origin?.retryBegan()
        retried = origin
    }
}

// Which requests go to the same server.
extension OriginSettings {
    /// What is the same for requests that go to the same server, where the balance uses a hash.
    ///
    /// - passed: the key that has proven the request. A name alone would let a client choose its
    ///   server.
    func affinity(of address: IPAddress, passed: KeyID?) -> UInt64 {
        switch rules.balance {
        case .roundRobin, .leastRequests: return 0
        case .hashAddress: return address.affinity
        case .hashKey:
            guard let passed else { return address.affinity }
            // A digest has 32 bytes; any eight of them are spread evenly.
            let bytes = passed.digest.bytes.span
            return (0..<8).reduce(0) { $0 << 8 | UInt64(bytes[$1]) }
        }
    }
}

extension IPAddress {
    fileprivate var affinity: UInt64 {
        switch self {
        case .v4(let address): UInt64(address)
        case .v6(let high, let low): high ^ low
        }
    }
}
