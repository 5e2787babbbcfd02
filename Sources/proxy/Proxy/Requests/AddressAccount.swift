import EventLoops
import HTTPWire
import Telemetry
import Verification

/// The client's address, and the limits that the request counts against.
struct AddressAccount {
    /// The use that the address has made of its limits.
    enum Entry {
        /// No limits apply.
        case none
        /// The entry of the client's connection, which holds it.
        case ofConnection(AddressEntry)
        /// Held for this request alone: the connection also carries other clients' requests.
        case ofRequest(AddressEntry)
        /// The entry was released at the end of the request, which was counted against it.
        case released
    }

    var address: IPAddress
    var holding = Entry.none
    /// Nanoseconds after which the address may continue, by the last check.
    var wait: UInt64 = 0

    init(_ address: IPAddress) { self.address = address }

    var entry: AddressEntry? {
        switch holding {
        case .none, .released: nil
        case .ofConnection(let entry), .ofRequest(let entry): entry
        }
    }

    /// Gives up the entry.
    ///
    /// - Returns: the entry, if it was held for this request alone. The caller releases it.
    mutating func leave() -> AddressEntry? {
        let held = holding
        if case .none = held { return nil }
        holding = .released
        return if case .ofRequest(let entry) = held { entry } else { nil }
    }
}

// The limits of the client's address.
extension Exchange {
    /// Whether the client's address is known.
    var hasAddress: Bool {
        guard client != nil, account.address == peer.address else { return true }
        return !peer.isUnix || peer.isTrusted
    }

    /// Charges this number of further tokens for the call: one for each challenge.
    func oweCalls(_ count: Int) {
        guard count > 0, let rate = settings.addressCalls else { return }
        account.entry?.oweCalls(count, rate, now: record.startedAt)
    }

    /// Whether the gateway may verify a signature for the address.
    func mayVerify(now: UInt64) -> Bool {
        guard let wait = verificationWait(now: now) else { return true }
        account.wait = wait
        return false
    }

    /// Nanoseconds until the gateway may verify a signature for the address; `nil` when it may now.
    func verificationWait(now: UInt64) -> UInt64? {
        settings.addressFailures.flatMap { account.entry?.failureWait($0, now: now) }
    }

    /// Counts a verification that failed. The client may have gone by then.
    func addFailure(now: UInt64) {
        guard let rate = settings.addressFailures else { return }
        switch account.holding {
        case .none: break
        case .ofConnection(let entry), .ofRequest(let entry): entry.addFailure(rate, now: now)
        case .released:
            guard case .held(let entry) = proxy.hold(account.address, max: nil) else { return }
            entry.addFailure(rate, now: now)
            entry.release(now: now)
        }
    }

    /// The address is over a limit. A connection of its own is then not read for a while. The
    /// connection of a trusted proxy is read on, since it also carries other clients' requests.
    func pauseAddress() {
        switch account.holding {
        case .none, .ofConnection: client?.pause()
        case .ofRequest, .released: break
        }
    }
}
