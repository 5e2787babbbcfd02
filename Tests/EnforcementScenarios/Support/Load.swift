import AppAttest
import Foundation
import RequestBinding
import SoftwareAuthenticator

/// Clients that send signed requests and enrol keys until the gateway is gone.
///
/// `@unchecked Sendable`: what changes is touched under `condition`; a client's key belongs to the
/// client's thread while one runs, and to the test otherwise.
final class Load: @unchecked Sendable {
    /// A request that was answered 200.
    struct Admitted {
        let raw: [UInt8]
        let keyID: KeyID
        let counter: UInt32
        let hasChallenge: Bool
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
    private var requests: [Admitted] = []
    private var keys: [KeyID] = []
    private var running = 0
    private var number = 0
    private var faults: [String] = []

    /// - `keys`: known to the gateway; every second one signs a challenge too.
    init(_ keys: [SoftwareKey]) {
        clients = keys.enumerated().map { Client($1, hasChallenge: $0 % 2 == 1) }
    }

    /// Runs until so many requests of this run were admitted and so many keys enrolled, then calls
    /// the closure, and returns when every client has noticed that the gateway is gone.
    ///
    /// The result is what was admitted in this run.
    func run(
        against gateway: GatewayProcess,
        until count: Int,
        enrolments: Int,
        then end: () throws -> Void
    ) throws -> [Admitted] {
        condition.withLock {
            requests = []
            running = clients.count + 1
        }
        let enrolledBefore = enrolled.count
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
            while requests.count < count || keys.count < enrolledBefore + enrolments {
                guard running == clients.count + 1, condition.wait(until: deadline) else {
                    throw ChildProcess.Failure(
                        description: "load ended early, \(requests.count) admitted: \(faults)"
                    )
                }
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
        return condition.withLock { requests }
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
            let answer = try connection.send(raw: raw)
            guard answer.status == 200 else {
                throw ChildProcess.Failure(description: "\(answer.status) \(answer.text)")
            }
            challenge = answer.value("App-Attest-Challenge")
            let admitted = Admitted(
                raw: raw,
                keyID: client.key.keyID,
                counter: client.key.counter.rawValue,
                hasChallenge: client.hasChallenge
            )
            condition.withLock {
                requests.append(admitted)
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
