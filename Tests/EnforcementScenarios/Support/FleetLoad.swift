import AppAttest
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator

/// Clients that present each assertion to all gateways of a fleet at once, and again where none has
/// admitted it.
///
/// `@unchecked Sendable`: what changes is touched under `condition`; a client's key belongs to its
/// thread while one runs, and to the test otherwise.
final class FleetLoad: @unchecked Sendable {
    enum Kind: CaseIterable {
        /// Without a challenge.
        case bare
        /// Without a challenge; of two assertions the newer one comes first.
        case window
        /// With a challenge of any gateway.
        case signed
    }

    /// A request that was sent, or is about to be.
    struct Sent {
        let raw: [UInt8]
        let target: String
        let keyID: KeyID
        let counter: UInt32
        /// Its key had been revoked before it was made.
        let isOfRevokedKey: Bool
    }

    private final class Client {
        var key: SoftwareKey
        let kind: Kind
        /// Requests that it still makes once its key is revoked.
        var farewells = 20

        init(_ key: SoftwareKey, _ kind: Kind) {
            self.key = key
            self.kind = kind
        }
    }

    /// A request that another issuer's token proves, which is good once.
    struct SentToken {
        let raw: [UInt8]
        let target: String
    }

    /// How often an assertion is presented again that nobody has admitted or refused.
    private static let retriesMax = 3
    /// Between two turns of a client, in seconds. An ordinary run leaves processors to the tests
    /// beside it.
    private static let pause: TimeInterval =
        ProcessInfo.processInfo.environment["PORTCULLIS_FLEET_CYCLES"] == nil ? 0.05 : 0

    private let fleet: Fleet
    private let condition = NSCondition()
    private var running = 0
    private var isEnding = false
    private var number = 0
    private var requests: [Sent] = []
    private var tokenRequests: [SentToken] = []
    private var admissions: [String: Int] = [:]
    private var revoked: Set<KeyID> = []
    private var keys: [KeyID] = []
    private var pairs = 0
    private var problems: [String] = []

    init(_ fleet: Fleet) { self.fleet = fleet }

    // MARK: What tests ask

    /// All that was ever sent.
    var sent: [Sent] { condition.withLock { requests } }
    /// All tokens that were ever sent.
    var sentTokens: [SentToken] { condition.withLock { tokenRequests } }
    /// For each target, how many gateways have answered 200; without those that nobody has.
    var admitted: [String: Int] { condition.withLock { admissions } }
    /// The keys that were answered 201.
    var enrolled: [KeyID] { condition.withLock { keys } }
    /// What no client may see.
    var faults: [String] { condition.withLock { problems } }

    /// The command that revokes a key has returned.
    func noteRevoked(_ keyID: KeyID) { condition.withLock { _ = revoked.insert(keyID) } }

    /// Waits until so many more requests were admitted, or this time has passed.
    ///
    /// - Returns: whether they were.
    @discardableResult
    func awaitAdmitted(_ more: Int, seconds: TimeInterval) -> Bool {
        let deadline = Date(timeIntervalSinceNow: seconds)
        return condition.withLock {
            let count = admissions.count + more
            while admissions.count < count {
                guard condition.wait(until: deadline) else { return admissions.count >= count }
            }
            return true
        }
    }

    // MARK: Running

    /// Starts a client for each key, and one that enrols.
    func begin(_ keys: [SoftwareKey]) {
        condition.withLock { isEnding = false }
        for (place, key) in keys.enumerated() { join(key, Kind.allCases[place % 3]) }
        start { [self] in
            awaitAdmitted(20, seconds: 1)
            try enrolPair()
            return true
        }
    }

    /// Starts one more client.
    func join(_ key: SoftwareKey, _ kind: Kind) {
        let client = Client(key, kind)
        // The client is handed to one thread, which is gone when `end` returns.
        nonisolated(unsafe) let handed = client
        start { [self] in
            try turn(handed)
            return handed.farewells > 0
        }
    }

    /// Starts a client that presents one token after the other.
    func joinTokens() {
        start { [self] in
            let number = condition.withLock {
                self.number += 1
                return self.number
            }
            let target = "/once?n=\(number)"
            // Clocks of gateways are hours apart, and such a token is good at all of them.
            let token = TokenIssuer.token(seconds: 86_400, more: ",\"jti\":\"\(number)\"")
            let fields = [(name: "X-Once", value: token), ("Content-Length", "0")]
            let raw = Array((HTTPClient.head("POST", target, fields) + "\r\n").utf8)
            condition.withLock { tokenRequests.append(SentToken(raw: raw, target: target)) }
            try present(raw, target)
            return true
        }
    }

    /// - `turn`: returns whether there is a next one.
    private func start(_ turn: @escaping @Sendable () throws -> Bool) {
        condition.withLock { running += 1 }
        Thread.detachNewThread { [self] in
            var goesOn = true
            while goesOn, condition.withLock({ !isEnding }) {
                do { goesOn = try turn() } catch { note("\(error)") }
                pause()
            }
            condition.withLock {
                running -= 1
                condition.broadcast()
            }
        }
    }

    /// Waits for the next turn, or for the end.
    private func pause() {
        let next = Date(timeIntervalSinceNow: Self.pause)
        condition.withLock { while !isEnding, condition.wait(until: next) {} }
    }

    /// Ends all clients, and waits for that.
    func end() throws {
        let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
        try condition.withLock {
            isEnding = true
            while running > 0 {
                guard condition.wait(until: deadline) else {
                    throw ChildProcess.Failure(description: "\(running) clients do not end")
                }
            }
        }
    }

    private func note(_ problem: String) { condition.withLock { problems.append(problem) } }

    // MARK: One client

    private func turn(_ client: Client) throws {
        var challenge: String?
        if client.kind == .signed {
            challenge = self.challenge("assertion")
            guard challenge != nil else { return }
        }
        let first = make(client, challenge)
        guard client.kind == .window else { return try present(first.raw, first.target) }
        let second = make(client, nil)
        try present(second.raw, second.target)
        try present(first.raw, first.target)
    }

    private func make(_ client: Client, _ challenge: String?) -> Sent {
        let (number, isOfRevokedKey) = condition.withLock {
            self.number += 1
            return (self.number, revoked.contains(client.key.keyID))
        }
        let target = "/v1/\(client.kind)?n=\(number)"
        let request = SoftwareKey.Request(method: "POST", target: target, challenge: challenge)
        let signing = SigningForm.lines(challenge == nil ? [.method, .target] : .all, headers: [])
        let proof = client.key.proof(of: request, signing: signing)
        let head = HTTPClient.head("POST", target, proof.fields + [("Content-Length", "0")])
        let sent = Sent(
            raw: Array((head + "\r\n").utf8),
            target: target,
            keyID: client.key.keyID,
            counter: client.key.counter.rawValue,
            isOfRevokedKey: isOfRevokedKey
        )
        if isOfRevokedKey { client.farewells -= 1 }
        condition.withLock { requests.append(sent) }
        return sent
    }

    /// Presents a proof to all gateways at once, and again while none has admitted or refused it.
    private func present(_ raw: [UInt8], _ target: String) throws {
        for _ in 0...Self.retriesMax {
            let answers = ask(everyone: raw)
            let admissions = answers.filter { $0?.status == 200 }.count
            for answer in answers {
                guard let answer, ![200, 401, 403, 503].contains(answer.status) else { continue }
                note("\(target): \(answer.status) \(answer.text)")
            }
            if admissions > 0 {
                return condition.withLock {
                    self.admissions[target, default: 0] += admissions
                    condition.broadcast()
                }
            }
            // Somebody has refused it: it was used, its key is revoked, or its challenge is over.
            if answers.contains(where: { $0?.status == 401 || $0?.status == 403 }) { return }
        }
    }

    /// Sends the same bytes to all gateways at once.
    ///
    /// - Returns: their answers; `nil` for those that gave none.
    private func ask(everyone raw: [UInt8]) -> [Answer?] {
        let answers = Answers(fleet.count)
        DispatchQueue.concurrentPerform(iterations: fleet.count) { number in
            guard let gateway = fleet.member(number) else { return }
            // A connection of its own: the bytes must not be sent twice by a client that connects
            // anew.
            if let answer = try? gateway.client().send(raw: raw) { answers.set(number, answer) }
        }
        return answers.all
    }

    /// A challenge of a gateway chosen by chance; `nil` when it gives none.
    private func challenge(_ purpose: String) -> String? {
        guard let gateway = fleet.member(.random(in: 0..<fleet.count)) else { return nil }
        return try? gateway.challenges(purpose, gateway.client())[0]
    }

    /// Enrols two keys with one challenge at two gateways at once: one is answered 201 at most.
    private func enrolPair() throws {
        guard let challenge = challenge("enrolment") else { return }
        let pair = [Scenario.device.makeKey(), Scenario.device.makeKey()]
        let places = (0..<fleet.count).shuffled()
        let answers = Answers(2)
        DispatchQueue.concurrentPerform(iterations: 2) { place in
            guard let gateway = fleet.member(places[place]) else { return }
            let answer = try? gateway.enrol(pair[place], gateway.client(), with: challenge)
            if let answer { answers.set(place, answer) }
        }
        let stored = zip(pair, answers.all).filter { $1?.status == 201 }.map(\.0.keyID)
        condition.withLock {
            keys += stored
            pairs += 1
            if stored.count > 1 { problems.append("one challenge has enrolled two keys") }
        }
    }
}

/// Answers that come on several threads.
private final class Answers: @unchecked Sendable {
    private let lock = NSLock()
    private var answers: [Answer?]

    init(_ count: Int) { answers = Array(repeating: nil, count: count) }

    var all: [Answer?] { lock.withLock { answers } }

    func set(_ place: Int, _ answer: Answer) { lock.withLock { answers[place] = answer } }
}
