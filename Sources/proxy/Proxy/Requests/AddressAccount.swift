import EventLoops
import HTTPWire
import Telemetry
import Verification

/// The client's address, and whose limits the request counts against.
struct AddressAccount {
    /// What the address has used of its limits.
    enum Entry {
        /// No limits apply.
        case none
        /// That of the client's connection, which holds it.
        case ofConnection(AddressEntry)
        /// Held for this request alone: a connection carries others too.
        case ofRequest(AddressEntry)
        /// It was let go of at the end of the request, which counted against it.
        case released
    }

    var address: IPAddress
    var holding = Entry.none
    /// Nanoseconds after which the address may go on, as was found last.
    var wait: UInt64 = 0

    init(_ address: IPAddress) { self.address = address }

    var entry: AddressEntry? {
        switch holding {
        case .none, .released: nil
        case .ofConnection(let entry), .ofRequest(let entry): entry
        }
    }

    /// Lets go of the entry.
    ///
    /// - Returns: the one that was held for this request alone, which is to be released.
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
        guard let client, account.address == client.peer.address else { return true }
        return !client.peer.isUnix || client.peer.isTrusted
    }

    /// The call costs so many tokens more: a challenge each.
    func oweCalls(_ count: Int) {
        guard count > 0, let rate = settings.addressCalls else { return }
        account.entry?.oweCalls(count, rate, now: record.startedAt)
    }

    /// Whether a signature may be verified for the address.
    func mayVerify(now: UInt64) -> Bool {
        guard let wait = verificationWait(now: now) else { return true }
        account.wait = wait
        return false
    }

    /// Nanoseconds until a signature may be verified for the address; `nil` when it may be now.
    func verificationWait(now: UInt64) -> UInt64? {
        settings.addressFailures.flatMap { account.entry?.failureWait($0, now: now) }
    }

    /// A verification was in vain. That may turn out when the client has gone.
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

    /// The address is over a limit. A connection of its own is then not read for a while; that of a
    /// trusted proxy carries others too.
    func pauseAddress() {
        switch account.holding {
        case .none, .ofConnection: client?.pause()
        case .ofRequest, .released: break
        }
    }
}
