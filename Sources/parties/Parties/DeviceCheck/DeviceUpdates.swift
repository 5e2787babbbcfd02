package import AppAttest
package import OutboundCalls
package import Rules

/// The changes of devices' bits that origins have asked for.
///
/// A change of one bit reads both bits and then writes both: Apple takes no single bit. So the
/// changes of one key wait for each other, in the order of their requests. A token does not
/// identify its device, but a key belongs to one device. Two apps of a team on one device have two
/// keys: their changes may overtake each other.
package struct DeviceUpdates: Sendable {
    /// The most changes that wait or are under way, of all keys and of one.
    package static let pendingMax = 10_000
    package static let pendingOfKeyMax = 16
    /// The most tries of a change. With the pauses they take some two minutes.
    package static let triesMax = 6
    package static let backOff = BackOff(first: .seconds(2), most: .seconds(60))
    /// The longest time that Apple may ask to wait.
    package static let pauseMax = Duration.seconds(300)

    package enum Action: Hashable, Sendable {
        case none
        /// Asks Apple. Then `replied`.
        case ask(DeviceQuestion, NamedDevice)
        /// Waits. Then `pauseEnded`.
        case pause(Duration)
    }

    /// The result of a change.
    package enum Outcome: Hashable, Sendable {
        /// Apple has stored the bits.
        case kept(DeviceBits)
        case failed(PartyFault)
        /// Apple does not take the token.
        case tokenRefused
        /// Too many changes wait.
        case dropped
    }

    private struct PendingUpdate {
        let device: NamedDevice
        let change: DeviceChange
        var failures = 0
        /// The query that is under way, or that follows a pause.
        var question: DeviceQuestion

        init(_ device: NamedDevice, _ change: DeviceChange) {
            self.device = device
            self.change = change
            question = change.whole.map { .update($0) } ?? .query
        }
    }

    /// The first change of each key is under way.
    private var updates: [KeyID: [PendingUpdate]] = [:]
    /// Changes that wait or are under way.
    package private(set) var pending = 0

    package init() {}

    /// An origin asks for a change.
    package mutating func asked(
        _ change: DeviceChange,
        of device: NamedDevice,
        _ keyID: KeyID
    ) -> (Action, Outcome?) {
        let own = updates[keyID]?.count ?? 0
        guard pending < Self.pendingMax, own < Self.pendingOfKeyMax else {
            return (.none, .dropped)
        }
        let update = PendingUpdate(device, change)
        updates[keyID, default: []].append(update)
        pending += 1
        return (own == 0 ? .ask(update.question, device) : .none, nil)
    }

    /// Apple has replied to the query of this key, or its result is unknown. An update that may
    /// have arrived is repeated: it is idempotent.
    ///
    /// - random: any number, fresh for each call.
    package mutating func replied(
        _ reply: DeviceReply,
        to keyID: KeyID,
        random: UInt64
    ) -> (Action, Outcome?) {
        guard var update = updates[keyID]?.first else { return (.none, nil) }
        let bits: DeviceBits
        switch (update.question, reply) {
        case (.query, .bits(let found, _)): bits = found
        case (.query, .neverSet): bits = .neverSet
        case (.update(let bits), .done): return ended(keyID, .kept(bits))
        case (_, .failed(let fault)): return failed(fault, &update, of: keyID, random: random)
        case (_, .tokenRefused): return ended(keyID, .tokenRefused)
        case (.query, .done), (.update, .bits), (.update, .neverSet), (.validate, _):
            return failed(.unreadable, &update, of: keyID, random: random)
        }
        update.question = .update(update.change.applied(to: bits))
        updates[keyID]?[0] = update
        return (.ask(update.question, update.device), nil)
    }

    package func pauseEnded(of keyID: KeyID) -> Action {
        guard let update = updates[keyID]?.first else { return .none }
        return .ask(update.question, update.device)
    }

    private mutating func failed(
        _ fault: PartyFault,
        _ update: inout PendingUpdate,
        of keyID: KeyID,
        random: UInt64
    ) -> (Action, Outcome?) {
        update.failures += 1
        guard fault.mayPass, update.failures < Self.triesMax else {
            return ended(keyID, .failed(fault))
        }
        // Another server may have changed the other bit meanwhile.
        if update.change.whole == nil { update.question = .query }
        updates[keyID]?[0] = update
        let pause = Self.backOff.pause(after: update.failures, random: random)
        let asked = min(fault.retryAfter ?? .zero, Self.pauseMax)
        return (.pause(max(pause, asked)), nil)
    }

    /// The first change of the key has ended; the next one begins.
    private mutating func ended(_ keyID: KeyID, _ outcome: Outcome) -> (Action, Outcome?) {
        pending -= 1
        updates[keyID]?.removeFirst()
        guard let next = updates[keyID]?.first else {
            updates[keyID] = nil
            return (.none, outcome)
        }
        return (.ask(next.question, next.device), outcome)
    }
}
