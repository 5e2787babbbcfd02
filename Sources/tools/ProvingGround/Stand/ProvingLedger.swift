import Foundation
import Synchronization

/// A request of the client as the middle saw it.
struct SeenRequest: Sendable {
    let method: String
    let target: String
    let fields: [(name: String, value: String)]
    let place: CalledPlace
    /// What the gateway answered; `nil` while it has not, and where it was not asked.
    var status: Int?
    /// The reason in `App-Attest-Error` of that answer.
    var reason: String?

    /// The value of a field's first line.
    subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    var hasAssertion: Bool { self["App-Attest-Assertion"] != nil }
    var hasSession: Bool { self["App-Attest-Session"] != nil }

    /// For people.
    var text: String {
        let proof = hasAssertion ? "with an assertion" : hasSession ? "in a session" : ""
        return "\(method) \(target) \(proof)"
    }
}

/// What a request is for: an endpoint of the gateway's, or something of the app's.
enum CalledPlace: String, Sendable, CaseIterable {
    case challenges, keys, sessions, plan, app

    static let endpoints = "/.well-known/app-attest"

    init(path: String) {
        guard path.hasPrefix(Self.endpoints + "/") else {
            self = .app
            return
        }
        let name = String(path.dropFirst(Self.endpoints.count + 1))
        self = Self(rawValue: name) ?? .app
    }
}

/// A request that the origin ran.
struct SeenExecution: Sendable {
    let method: String
    let target: String
    let fields: [(name: String, value: String)]

    subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}

/// A call of the device.
struct SeenCall: Sendable {
    let kind: PlayedDeviceCall
    /// The word of a failure; `nil` for a call that worked.
    let error: String?
}

/// What came since a moment.
struct SeenTraffic: Sendable {
    var isAndroid = false
    var requests: [SeenRequest] = []
    var executions: [SeenExecution] = []
    var calls: [SeenCall] = []
}

/// What the parts of a stand have seen, for all threads.
final class ProvingLedger: Sendable {
    private struct State {
        var seen = SeenTraffic()
        /// Requests that the middle works at. Those that it lets hang are none of them.
        var underWay = 0
        var isClosed = false
    }

    /// How much there was at a moment.
    struct Mark: Sendable {
        var requests = 0
        var executions = 0
        var calls = 0
    }

    private let platform: ProvingPlatform
    private let state = Mutex(State())
    private let changed = NSCondition()

    /// Called with a line for each request and each call of the device.
    private let trace: (@Sendable (String) -> Void)?
    private let began = ContinuousClock.now

    init(_ platform: ProvingPlatform, trace: (@Sendable (String) -> Void)?) {
        (self.platform, self.trace) = (platform, trace)
    }

    /// Writes a line with the time since the beginning.
    private func tell(_ text: String) {
        guard let trace else { return }
        let seconds = (ContinuousClock.now - began) / .seconds(1)
        trace("     \(ExpectedRange.text(seconds)) s  \(text)")
    }

    var now: Mark {
        state.withLock { state in
            Mark(
                requests: state.seen.requests.count,
                executions: state.seen.executions.count,
                calls: state.seen.calls.count
            )
        }
    }

    func seen(since mark: Mark) -> SeenTraffic {
        state.withLock { state in
            SeenTraffic(
                isAndroid: platform == .android,
                requests: Array(state.seen.requests[mark.requests...]),
                executions: Array(state.seen.executions[mark.executions...]),
                calls: Array(state.seen.calls[mark.calls...])
            )
        }
    }

    // MARK: What the parts say

    /// Notes a request.
    ///
    /// - Returns: its number, for what becomes of it.
    func add(_ request: SeenRequest) -> Int {
        let number = change { state in
            state.underWay += 1
            state.seen.requests.append(request)
            return state.seen.requests.count - 1
        }
        tell("\(number) \(request.text)")
        return number
    }

    func answered(_ number: Int, _ status: Int, reason: String?) {
        tell("\(number) the gateway says \(status) \(reason ?? "")")
        change { state in
            state.seen.requests[number].status = status
            state.seen.requests[number].reason = reason
        }
    }

    /// The middle is done with a request, or lets it hang.
    func settled() { change { $0.underWay -= 1 } }

    /// What the middle does with a request in the place of handing it on.
    func strikes(_ number: Int, _ deed: PlayedFault.Deed) { tell("\(number) \(deed.rawValue)") }

    func add(_ execution: SeenExecution) { change { $0.seen.executions.append(execution) } }

    func add(_ call: SeenCall) {
        tell("the device: \(call.kind.rawValue) \(call.error ?? "")")
        change { $0.seen.calls.append(call) }
    }

    /// The case is over: nothing waits any more.
    func close() { change { $0.isClosed = true } }

    private func change<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
        let value = state.withLock { body(&$0) }
        changed.withLock { changed.broadcast() }
        return value
    }

    // MARK: Waiting

    /// Waits.
    ///
    /// - Returns: `false` where the case has ended meanwhile.
    @discardableResult
    func pause(seconds: Double) -> Bool {
        _ = wait(seconds: seconds) { $0.isClosed }
        return state.withLock { !$0.isClosed }
    }

    /// Waits until the middle works at no request; at most this long.
    func settle(seconds: Double) { _ = wait(seconds: seconds) { $0.underWay == 0 } }

    /// Waits until this holds of what came since a moment.
    func wait(seconds: Double, since mark: Mark, until isTrue: (SeenTraffic) -> Bool) -> Bool {
        let deadline = Date(timeIntervalSinceNow: seconds)
        return changed.withLock {
            while !isTrue(seen(since: mark)) {
                guard changed.wait(until: deadline) else { return isTrue(seen(since: mark)) }
            }
            return true
        }
    }

    private func wait(seconds: Double, until isTrue: (State) -> Bool) -> Bool {
        let deadline = Date(timeIntervalSinceNow: seconds)
        return changed.withLock {
            while !state.withLock({ isTrue($0) }) {
                guard changed.wait(until: deadline) else { return state.withLock { isTrue($0) } }
            }
            return true
        }
    }
}
