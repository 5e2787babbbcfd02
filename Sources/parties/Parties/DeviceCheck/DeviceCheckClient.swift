import AppAttest
import Cryptography
import Dispatch
import Encodings
import EventLoops
import KeyStore
import Logging
import OutboundCalls
package import Rules
package import Services
import Synchronization
package import Verification

/// Asks Apple about devices, and stores bits there.
///
/// It is no ``ProofParty``: a rule asks it about the device of a request that is verified already,
/// and gets bits where a proof would be good or not. Origins and operators ask it, too, and change
/// the bits.
///
/// Performs the decisions of ``UsedTokens`` and ``DeviceUpdates``. It runs on the queues of its
/// callers and of the client that makes the calls, and never waits.
package final class DeviceCheckClient: DeviceChecking, Party {
    struct Board {
        var used: UsedTokens
        var updates = DeviceUpdates()
        var facts = DeviceFacts()
        var terms: Terms
        var pace = NoticePace<String>()
        /// Called when no change is pending.
        var idle: (@Sendable () -> Void)?
    }

    /// The settings of the configuration.
    struct Terms: Sendable {
        /// The teams that have a key under `apple.keys`.
        var teams: AppleTeams
        /// The most time for a call about a change.
        var timeout: Duration
        /// Calls per second to one of Apple's hosts.
        var perSecond: Int
    }

    /// The time that the end of the process waits for changes that Apple has not stored yet.
    package static let finishTime = Duration.seconds(5)

    private let apple: any AppleCalling
    private let context: PartyContext
    private let queue = DispatchQueue(label: "portcullis.devices")
    let board: Mutex<Board>

    init(_ settings: AppleSettings, over apple: any AppleCalling, _ context: PartyContext) {
        (self.apple, self.context) = (apple, context)
        let terms = Terms(settings)
        board = Mutex(Board(used: UsedTokens(terms.used), terms: terms))
    }

    /// Used tokens stay used. Pending changes keep their team: they are made with its key, or lost
    /// when it has none any more.
    package func loaded(_ settings: PartySettings) {
        let terms = Terms(settings.apple)
        board.withLock { board in
            board.terms = terms
            board.used.raise(tokensMax: terms.used.tokensMax)
        }
    }

    package var facts: [any PartyFacts] { [deviceFacts] }

    private var deviceFacts: DeviceFacts {
        board.withLock { board in
            board.facts.pendingChanges = board.updates.pending
            board.facts.usedTokens = board.used.count
            return board.facts
        }
    }

    // MARK: Requests

    package func check(
        _ device: DeviceMention,
        timeout: Duration,
        _ found: @escaping @Sendable (DeviceFinding) -> Void
    ) {
        let client = TokenClient(device.keyID, at: device.address)
        switch begin(device.token, of: client) {
        case .begun: break
        case .used: return found(.used)
        case .crowded: return found(.crowded)
        case .full: return found(.full)
        }
        ask(.query, about: named(device), timeout: timeout) { [self] reply in
            let finding = DeviceFinding(reply)
            let isSpent = if case .bits = finding { true } else { false }
            end(device.token, of: client, isSpent: isSpent)
            found(finding)
        }
    }

    /// Begins a shown token; `client` is `nil` for an operator's call. If it has begun,
    /// ``end(_:of:isSpent:)`` must follow.
    private func begin(_ token: DeviceToken, of client: TokenClient?) -> UsedTokens.Beginning {
        let digest = token.digest
        let now = MonotonicClock.seconds
        let beginning = board.withLock { $0.used.begin(digest, of: client, now: now) }
        guard beginning == .begun else { return beginning }
        switch context.decider.claim(digest, now: now) {
        case .free: return .begun
        case let claim:
            board.withLock { $0.used.end(digest, of: client, isSpent: false, now: now) }
            return claim == .used ? .used : .full
        }
    }

    /// The query about a begun token has ended, with or without an answer of Apple.
    private func end(_ token: DeviceToken, of client: TokenClient?, isSpent: Bool) {
        let now = MonotonicClock.seconds
        board.withLock { $0.used.end(token.digest, of: client, isSpent: isSpent, now: now) }
        if !isSpent { context.decider.release(token.digest) }
    }

    /// Asks Apple once.
    ///
    /// - timeout: `nil` for the configuration's time for a call.
    private func ask(
        _ question: DeviceQuestion,
        about device: NamedDevice,
        timeout: Duration? = nil,
        _ done: @escaping @Sendable (DeviceReply) -> Void
    ) {
        let call = device.call(
            question,
            transaction: Hex.text(RandomBytes.make(count: 16)),
            at: context.wallClock(),
            timeout: timeout ?? board.withLock { $0.terms.timeout }
        )
        apple.send(call) { done(DeviceReply($0, to: question)) }
    }

    private func named(_ device: DeviceMention) -> NamedDevice {
        let team = board.withLock { $0.terms.teams.team(of: device.appID) }
        return NamedDevice(device.token, device.environment, teamID: team)
    }

    /// The team that has a key; `nil` where several have one, or none.
    private var onlyTeam: String? { board.withLock { $0.terms.teams.only } }

    // MARK: Changes

    package func update(_ device: DeviceMention, _ change: DeviceChange) {
        let (keyID, named) = (device.keyID, named(device))
        take(keyID) { $0.asked(change, of: named, keyID) }
    }

    /// Calls `idle` when no change is pending, or after a time, with the number of pending ones.
    package func finish(within time: Duration, _ idle: @escaping @Sendable (_ left: Int) -> Void) {
        let once = FirstAnswer<Void> { [self] _ in idle(deviceFacts.pendingChanges) }
        let isIdle = board.withLock { board in
            board.idle = { once.give(()) }
            return board.updates.pending == 0
        }
        guard !isIdle else { return once.give(()) }
        queue.asyncAfter(deadline: .now() + .milliseconds(Int(clamping: time.milliseconds))) {
            once.give(())
        }
    }

    /// Gives the machine an event, and performs its actions.
    private func take(
        _ keyID: KeyID,
        _ decide: (inout DeviceUpdates) -> (DeviceUpdates.Action, DeviceUpdates.Outcome?)
    ) {
        let (action, outcome, idle) = board.withLock { board in
            let (action, outcome) = decide(&board.updates)
            switch outcome {
            case nil: break
            case .kept: board.facts.keptChanges += 1
            case .failed, .tokenRefused: board.facts.failedChanges += 1
            case .dropped: board.facts.droppedChanges += 1
            }
            return (action, outcome, board.updates.pending == 0 ? board.idle : nil)
        }
        tell(outcome, keyID)
        perform(action, keyID)
        idle?()
    }

    private func perform(_ action: DeviceUpdates.Action, _ keyID: KeyID) {
        switch action {
        case .none: break
        case .ask(let question, let device):
            ask(question, about: device) { [self] reply in
                let random = RandomBytes.word()
                take(keyID) { $0.replied(reply, to: keyID, random: random) }
            }
        case .pause(let time):
            let milliseconds = DispatchTimeInterval.milliseconds(Int(clamping: time.milliseconds))
            queue.asyncAfter(deadline: .now() + milliseconds) { [self] in
                take(keyID) { ($0.pauseEnded(of: keyID), nil) }
            }
        }
    }

    private func tell(_ outcome: DeviceUpdates.Outcome?, _ keyID: KeyID) {
        let why: String
        switch outcome {
        case nil, .kept: return
        case .failed(let fault): why = fault.word("key")
        case .tokenRefused: why = "token-refused"
        case .dropped: why = "too many wait"
        }
        let now = MonotonicClock.nanoseconds
        guard let untold = board.withLock({ $0.pace.untold(of: why, now: now) }) else { return }
        let more = untold > 0 ? ", and \(untold) more since this was last told" : ""
        context.log.error(
            """
            a device's bits were not changed, although an origin asked for it: \(why); key \
            \(keyID.logName)\(more); next: set them by the admin call device-check/update with a \
            new token
            """
        )
    }
}

extension DeviceCheckClient.Terms {
    init(_ apple: AppleSettings) {
        self.init(
            teams: AppleTeams(apple.credentials),
            timeout: apple.timeout,
            perSecond: apple.perSecond
        )
    }

    var used: UsedTokens.Limits {
        UsedTokens.Limits(callsPerSecond: perSecond, hosts: KeyEnvironment.allCases.count)
    }
}

extension DeviceFinding {
    /// The finding that a request gets from Apple's reply to a query.
    init(_ reply: DeviceReply) {
        switch reply {
        case .bits(let bits, _): self = .bits(bits)
        case .neverSet: self = .bits(.neverSet)
        case .tokenRefused: self = .malformed
        case .failed, .done: self = .unavailable
        }
    }
}

// Calls of origins that query devices themselves. A token that came with a request or a call is
// good for no other request, query or validation. An update accepts it nevertheless: an origin
// changes bits that it has read with this token.
extension DeviceCheckClient: DeviceCalling {
    package func call(_ call: DeviceCall, _ done: @escaping @Sendable (DeviceCallResult) -> Void) {
        let beginning = begin(call.token, of: nil)
        switch (beginning, call.task) {
        case (.begun, _), (.used, .update), (.full, .update): break
        case (.used, .query), (.used, .validate): return done(.tokenUsed)
        case (.full, .query), (.full, .validate), (.crowded, _):
            return done(.unavailable("tokens-full"))
        }
        let device = NamedDevice(call.token, call.environment, teamID: call.team ?? onlyTeam)
        perform(call, on: device) { [self] result in
            switch (beginning, result) {
            case (.begun, .bits), (.begun, .genuine): end(call.token, of: nil, isSpent: true)
            case (.begun, _): end(call.token, of: nil, isSpent: false)
            case (.used, _), (.crowded, _), (.full, _): break
            }
            done(result)
        }
    }

    private func perform(
        _ call: DeviceCall,
        on device: NamedDevice,
        _ done: @escaping @Sendable (DeviceCallResult) -> Void
    ) {
        switch call.task {
        case .query: ask(.query, about: device) { done(DeviceCallResult($0, to: .query)) }
        case .validate: ask(.validate, about: device) { done(DeviceCallResult($0, to: .validate)) }
        case .update:
            if let bits = call.change.whole { return write(bits, of: device, done) }
            ask(.query, about: device) { [self] reply in
                switch DeviceCallResult(reply, to: .query) {
                case .bits(let bits, _): write(call.change.applied(to: bits), of: device, done)
                case let other: done(other)
                }
            }
        }
    }

    private func write(
        _ bits: DeviceBits,
        of device: NamedDevice,
        _ done: @escaping @Sendable (DeviceCallResult) -> Void
    ) {
        ask(.update(bits), about: device) { done(DeviceCallResult($0, to: .update(bits))) }
    }
}

extension DeviceCallResult {
    fileprivate init(_ reply: DeviceReply, to question: DeviceQuestion) {
        switch (reply, question) {
        case (.bits(let bits, let month), _): self = .bits(bits, month: month)
        case (.neverSet, _): self = .bits(.neverSet, month: nil)
        case (.done, .update(let bits)): self = .bits(bits, month: nil)
        case (.done, _): self = .genuine
        case (.tokenRefused, _): self = .tokenRefused
        case (.failed(let fault), _): self = .unavailable(fault.word("key"))
        }
    }
}
