import Dispatch
import Foundation
import FoundationNetworking
import PortcullisClient
import PortcullisClientTesting
import Synchronization

/// An app with the client package does none of these steps by hand.
struct ClientPackage: Step {
    let title = "The client package enrols, recovers and opens a session"

    func play(on stage: Stage) throws {
        stage.narrator.say("   session.data(for: request), and nothing else in the app")
        let first = try get("/v1/cart", stage)
        stage.narrator.claim(
            "the 401 told it what to sign; it made one key and had it attested once",
            first.statusCode == 200 && first.attempts == 2 && stage.app.counts == .init(1, 1)
        )
        let key = Self.assertingKey(first)

        stage.narrator.say("   the phone loses its keys; the app's record of them stays:")
        try stage.app.loseKeys()
        let second = try get("/v1/cart", stage)
        stage.narrator.claim(
            "it noticed, enrolled a second key, and the request went through",
            second.statusCode == 200 && stage.app.counts == .init(2, 2)
                && Self.assertingKey(second) != key && Self.assertingKey(second) != nil
        )

        stage.narrator.say("   a route that accepts sessions:")
        let third = try get("/v1/timeline", stage, proof: "session")
        stage.narrator.claim(
            "one assertion opened a session; the request is signed with its secret",
            third.statusCode == 200 && Self.isSession(third) && stage.app.counts == .init(2, 2)
        )
    }

    private func get(
        _ path: String,
        _ stage: Stage,
        proof: String = "assertion"
    ) throws -> ProvenResponse {
        let answer = try stage.app.get(path, gateway: stage.port)
        let (status, attempts) = (answer.statusCode, answer.attempts)
        stage.narrator.say("   → GET \(path)   ← \(status), attempts: \(attempts)")
        let sighting = try stage.origin.next()
        stage.narrator.originSaw(sighting)
        stage.narrator.claim(
            "the origin is told that it was proven by \(proof)",
            sighting["App-Attest-Verdict"] == "pass" && sighting["App-Attest-Proof"] == proof
        )
        return answer
    }

    private static func assertingKey(_ answer: ProvenResponse) -> String? {
        if case .assertion(let keyID) = answer.proof { keyID } else { nil }
    }

    private static func isSession(_ answer: ProvenResponse) -> Bool {
        if case .session = answer.proof { true } else { false }
    }
}

/// An app with the client package in it, on a phone whose keys are files of the story's folder.
final class PackagedApp: Sendable {
    static let appID = "DEMO123456.com.example.reader"

    /// The root that the gateway trusts for it, in PEM.
    let rootPEM: String
    private let service: CountedService
    private let keys: URL
    private let session = Mutex<PortcullisSession?>(nil)

    init(_ folder: DemoFolder) throws {
        keys = URL(filePath: folder.file("phone-keys"))
        do {
            let authority = try TestAuthority()
            rootPEM = authority.rootPEM
            service = CountedService(
                try SoftwareAttestationService(
                    appID: Self.appID,
                    authority: authority,
                    folder: keys
                )
            )
        } catch {
            throw StoryFault("no software device: \(error)")
        }
    }

    /// How many keys the phone made, and how often Apple would have been asked to attest one.
    var counts: CountedService.Counts { service.counts }

    /// An app's own line: `try await session.data(for: request)`.
    func get(_ path: String, gateway port: UInt16) throws -> ProvenResponse {
        let session = try open(port)
        guard let url = URL(string: "http://127.0.0.1:\(port)\(path)") else {
            throw StoryFault("\(path) makes no URL")
        }
        let outcome = Outcome()
        let done = DispatchSemaphore(value: 0)
        Task {
            let answer: Result<ProvenResponse, any Error>
            do {
                answer = .success(try await session.data(for: URLRequest(url: url)).1)
            } catch {
                answer = .failure(StoryFault("the package sent nothing: \(error)"))
            }
            outcome.answer.withLock { $0 = answer }
            done.signal()
        }
        guard done.wait(timeout: .now() + .seconds(30)) == .success,
            let answer = outcome.answer.withLock({ $0 })
        else { throw StoryFault("the package did not answer in 30 s") }
        return try answer.get()
    }

    /// The phone loses its keys, as after a restored backup. The app's record of them stays.
    func loseKeys() throws {
        do {
            for file in try FileManager.default.contentsOfDirectory(atPath: keys.path) {
                try FileManager.default.removeItem(at: keys.appending(path: file))
            }
        } catch {
            throw StoryFault("the phone's keys can't be removed: \(error)")
        }
    }

    private func open(_ port: UInt16) throws -> PortcullisSession {
        guard let gateway = URL(string: "http://127.0.0.1:\(port)") else {
            throw StoryFault("port \(port) makes no URL")
        }
        return session.withLock { session in
            if let session { return session }
            let opened = PortcullisSession(
                PortcullisConfiguration(gateway: gateway),
                service: service,
                store: MemoryEnrolmentStore()
            )
            session = opened
            return opened
        }
    }

    /// Holds the answer for the thread that tells the story.
    private final class Outcome: Sendable {
        let answer = Mutex<Result<ProvenResponse, any Error>?>(nil)
    }
}

/// A device that counts what Apple would count.
final class CountedService: AttestationService {
    struct Counts: Equatable {
        var keys: Int
        var attestations: Int

        init(_ keys: Int, _ attestations: Int) {
            (self.keys, self.attestations) = (keys, attestations)
        }
    }

    private let device: any AttestationService
    private let counted = Mutex(Counts(0, 0))

    init(_ device: any AttestationService) { self.device = device }

    var counts: Counts { counted.withLock { $0 } }

    var isSupported: Bool { device.isSupported }

    func generateKey() async throws(AttestationServiceError) -> String {
        counted.withLock { $0.keys += 1 }
        return try await device.generateKey()
    }

    func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        counted.withLock { $0.attestations += 1 }
        return try await device.attestKey(keyID, clientDataHash: clientDataHash)
    }

    func generateAssertion(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        try await device.generateAssertion(keyID, clientDataHash: clientDataHash)
    }
}
