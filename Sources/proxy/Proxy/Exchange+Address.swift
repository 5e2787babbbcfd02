import ClientStreams
import HTTPWire
import Lanes
import Origins
import Rules
import Telemetry
import Verification

// The limits of the client's address.
extension Exchange {
    /// Finds whose limits the request counts against: those of the client's address. Behind a
    /// trusted proxy that is the one that it names, or else its own: never nobody's, so that no
    /// spelling lifts a limit. Only the peer of a Unix socket that is not trusted has no address.
    private func findAddressEntry() {
        guard let client else { return }
        if clientAddress == client.peerAddress {
            addressEntry = client.addressEntry
            guard addressEntry == nil, !client.peerIsUnix || client.provenance.peerIsTrusted
            else { return }
        }
        guard
            case .held(let entry) = proxy.hold(clientAddress, max: nil)
        else { return }
        addressEntry = entry
        holdsEntry = true
    }

    func releaseAddress() {
        if holdsEntry { addressEntry?.release(now: MonotonicClock.nanoseconds) }
        addressEntry = nil
        holdsEntry = false
    }

    /// Whether the address has a request left, which is taken.
    func takesRequest() -> Bool {
        findAddressEntry()
        guard let rate = settings.limits.addressRequests, let addressEntry,
            let wait = addressEntry.takeRequest(rate, now: startedAt)
        else { return true }
        proxy.tally.add(.addressRequestsRefused)
        addressWait = wait
        return false
    }

    /// Whether the address has a call of the gateway's own endpoints left, which is taken.
    func takesCall() -> Bool {
        guard let rate = settings.limits.addressCalls, let addressEntry,
            let wait = addressEntry.takeCall(rate, now: startedAt)
        else { return true }
        proxy.tally.add(.addressRequestsRefused)
        addressWait = wait
        return false
    }

    /// The call costs so many tokens more: a challenge each.
    func oweCalls(_ count: Int) {
        guard count > 0, let rate = settings.limits.addressCalls else { return }
        addressEntry?.oweCalls(count, rate, now: startedAt)
    }

    /// Whether a signature may be verified for the address.
    func mayVerify(now: UInt64) -> Bool {
        guard let rate = settings.limits.addressFailures, let addressEntry,
            let wait = addressEntry.failureWait(rate, now: now)
        else { return true }
        addressWait = wait
        return false
    }

    /// Answers that the address is over a limit. A connection of its own is then not read for a
    /// while; that of a trusted proxy carries others too.
    func refuseForAddress() {
        if !holdsEntry { client?.pause() }
        refuse(.addressThrottled)
    }

    /// A verification was in vain.
    func addFailure(now: UInt64) {
        guard let rate = settings.limits.addressFailures else { return }
        addressEntry?.addFailure(rate, now: now)
    }
}
