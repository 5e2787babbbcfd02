import AppAttest
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator

/// Clients that send signed requests and enrol keys until the gateway is gone.
///
/// `@unchecked Sendable`: what changes is touched under `condition`; a client's key belongs to the
/// client's thread while one runs, and to the test otherwise.
final class Load: @unchecked Sendable {
    /// A request that was sent.
    struct Sent {
        let raw: [UInt8]
        let target: String
        let keyID: KeyID
        let counter: UInt32
        let hasChallenge: Bool
    }

    /// What became of the requests of a run.
    struct Outcome {
        /// Answered 200.
        var admitted: [Sent] = []
        /// Without an answer: the gateway went before.
        var unanswered: [Sent] = []
    }

    private final class Client {
        var key: SoftwareKey
        let hasChallenge: Bool

        init(_ key: SoftwareKey, hasChallenge: Bool) {
            self.key = key
            self.hasChallenge = hasChallenge
        }
    }

    private let clients: [Client]
    private let condition = NSCondition()
    private var outcome = Outcome()
    private var keys: [KeyID] = []
    private var running = 0
    private var number = 0
    /// Why clients ended: all because the gateway was gone, or a test has failed.
    private(set) var faults: [String] = []

    /// - `keys`: known to the gateway; every second one signs a challenge too.
    init(_ keys: [SoftwareKey]) {
        clients = keys.enumerated().map { Client($1, hasChallenge: $0 % 2 == 1) }
    }

    /// Runs until so many requests of this run were admitted and some run has enrolled a key, or,
    /// with `nil`, until the gateway ends by itself; then calls the closure, and returns when every
    /// client has noticed its end.
    func run(
        against gateway: GatewayProcess,
        until count: Int?,
        then end: () throws -> Void
    ) throws -> Outcome {
        condition.withLock {
            outcome = Outcome()
            faults = []
            running = clients.count + 1
        }
        for client in clients {
            // The client is handed to one thread, which is gone when this function returns.
            nonisolated(unsafe) let client = client
            Thread.detachNewThread { [self] in
                work { try send(client, gateway) }
            }
        }
        Thread.detachNewThread { [self] in work { try enrol(gateway) } }
        let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
        try condition.withLock {
            // Without an enrolled key nothing would show whether one is lost.
            while outcome.admitted.count < count ?? .max || keys.isEmpty,
                running == clients.count + 1
            {
                guard condition.wait(until: deadline) else {
                    throw ChildProcess.Failure(
                        description: "load stands still, \(outcome.admitted.count) admitted"
                    )
                }
            }
            guard count == nil || running == clients.count + 1 else {
                throw ChildProcess.Failure(
                    description: "load ended early, \(outcome.admitted.count) admitted: \(faults)"
                )
            }
        }
        try end()
        try condition.withLock {
            while running > 0 {
                guard condition.wait(until: deadline) else {
                    throw ChildProcess.Failure(description: "load does not end")
                }
            }
        }
        return condition.withLock { outcome }
    }

    /// Keys that were answered 201, in all runs.
    var enrolled: [KeyID] { condition.withLock { keys } }

    private func work(_ body: () throws -> Void) {
        var fault = ""
        do { try body() } catch { fault = "\(error)" }
        condition.withLock {
            running -= 1
            faults.append(fault)
            condition.broadcast()
        }
    }

    private func nextNumber() -> Int {
        condition.withLock {
            number += 1
            return number
        }
    }

    private func send(_ client: Client, _ gateway: GatewayProcess) throws {
        let connection = gateway.client()
        var challenge: String?
        while true {
            let signing: SigningForm
            if client.hasChallenge {
                signing = .lines(.all, headers: [])
                challenge = try challenge ?? gateway.challenges("assertion", connection)[0]
            } else {
                signing = .lines([.method, .target], headers: [])
            }
            let request = SoftwareKey.Request(
                method: "GET",
                target: "/v1/\(client.hasChallenge ? "signed" : "bare")?n=\(nextNumber())",
                challenge: challenge
            )
            let proof = client.key.proof(of: request, signing: signing)
            let head = HTTPClient.head(request.method, request.target, proof.fields)
            let raw = Array((head + "\r\n").utf8)
            let sent = Sent(
                raw: raw,
                target: request.target,
                keyID: client.key.keyID,
                counter: client.key.counter.rawValue,
                hasChallenge: client.hasChallenge
            )
            let answer: Answer
            do {
                answer = try connection.send(raw: raw)
            } catch {
                condition.withLock { outcome.unanswered.append(sent) }
                throw error
            }
            guard answer.status == 200 else {
                throw ChildProcess.Failure(description: "\(answer.status) \(answer.text)")
            }
            challenge = answer.value("App-Attest-Challenge")
            condition.withLock {
                outcome.admitted.append(sent)
                condition.broadcast()
            }
        }
    }

    private func enrol(_ gateway: GatewayProcess) throws {
        let connection = gateway.client()
        while true {
            let key = Scenario.device.makeKey()
            let answer = try gateway.enrol(key, connection)
            guard answer.status == 201 else {
                throw ChildProcess.Failure(description: "\(answer.status) \(answer.text)")
            }
            condition.withLock {
                keys.append(key.keyID)
                condition.broadcast()
            }
        }
    }
}
