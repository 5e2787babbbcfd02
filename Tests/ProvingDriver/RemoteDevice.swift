import Foundation
import PortcullisClient
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Calls of the proving ground: JSON in and out.
struct RemoteCalls: Sendable {
    private let server: URL
    private static let session: URLSession = {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = 256
        return URLSession(configuration: configuration)
    }()
    /// A step may take minutes.
    private static let patience: TimeInterval = 900

    init(_ server: URL) { self.server = server }

    /// - Throws: ``DriverFault`` with the word of a device that fails.
    func call(_ path: String, _ content: [String: Any]) async throws -> [String: Any] {
        var request = URLRequest(url: server.appending(path: path))
        request.httpMethod = "POST"
        request.timeoutInterval = Self.patience
        request.httpBody = try JSONSerialization.data(withJSONObject: content)
        let (data, response) = try await Self.session.data(for: request)
        let object = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
        guard (response as? HTTPURLResponse)?.statusCode == 200 else {
            throw DriverFault(object["error"] as? String ?? "no answer")
        }
        return object
    }
}

/// The device of the proving ground.
struct RemoteDevice: Sendable {
    private let calls: RemoteCalls
    /// What the system says about it.
    var isSupported = true

    init(_ server: URL) { calls = RemoteCalls(server) }

    func text(
        _ member: String,
        of path: String,
        _ content: [String: String]
    ) async throws(AttestationServiceError) -> String {
        do {
            let answer = try await calls.call(path, content)
            guard let text = answer[member] as? String else { throw DriverFault("no \(member)") }
            return text
        } catch {
            let words: [String: AttestationServiceError] = [
                "serverUnavailable": .serverUnavailable, "invalidKey": .invalidKey,
                "invalidInput": .invalidInput, "featureUnsupported": .featureUnsupported,
            ]
            throw words["\(error)"] ?? .unknownSystemFailure
        }
    }

    func data(
        _ member: String,
        of path: String,
        _ content: [String: String]
    ) async throws(AttestationServiceError) -> Data {
        guard let data = Data(base64Encoded: try await text(member, of: path, content)) else {
            throw .unknownSystemFailure
        }
        return data
    }
}

/// Whether an app runs. A driver can't kill a part of its own process, so each way out of a session
/// asks this first.
final class Life: Sendable {
    private let hasEnded = Atomic<Bool>(false)

    func end() { hasEnded.store(true, ordering: .relaxed) }

    var isOver: Bool { hasEnded.load(ordering: .relaxed) }
}

/// Whether the app that asked is dead.
private struct Killed: Error {}

/// The device, as long as the app lives.
struct MortalService: AttestationService, DeviceTokenService {
    let life: Life
    let device: RemoteDevice

    var isSupported: Bool { device.isSupported }

    func generateKey() async throws(AttestationServiceError) -> String {
        try check()
        return try await device.text("key_id", of: "/keys", [:])
    }

    func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        try check()
        let content = ["key_id": keyID, "hash": clientDataHash.base64EncodedString()]
        return try await device.data("attestation", of: "/attest", content)
    }

    func generateAssertion(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        try check()
        let content = ["key_id": keyID, "hash": clientDataHash.base64EncodedString()]
        return try await device.data("assertion", of: "/assert", content)
    }

    func generateToken() async throws(AttestationServiceError) -> Data {
        try check()
        return try await device.data("token", of: "/device-token", [:])
    }

    private func check() throws(AttestationServiceError) {
        guard !life.isOver else { throw .unknownSystemFailure }
    }
}

/// The record, as long as the app lives.
struct MortalStore: EnrolmentStore {
    let life: Life
    let store: any EnrolmentStore

    func read() async throws -> Data? {
        guard !life.isOver else { throw Killed() }
        return try await store.read()
    }

    func replace(_ expected: Data?, with record: Data?) async throws -> Bool {
        guard !life.isOver else { throw Killed() }
        return try await store.replace(expected, with: record)
    }

    func scoped(to endpoints: URL) -> any EnrolmentStore {
        MortalStore(life: life, store: store.scoped(to: endpoints))
    }
}

/// The network, as long as the app lives.
struct MortalTransport: HTTPTransport {
    let life: Life
    let misconduct: Misconduct?
    private let transport = URLSessionTransport()

    init(life: Life, misconduct: Misconduct? = nil) {
        (self.life, self.misconduct) = (life, misconduct)
    }

    func prepared(_ request: URLRequest) -> URLRequest { transport.prepared(request) }

    func send(_ request: URLRequest, content: RequestContent) async throws -> TransportAnswer {
        guard !life.isOver else { throw Killed() }
        let answer = try await transport.send(request, content: content)
        guard let misconduct, let response = misconduct.changed(answer.response) else {
            return answer
        }
        return TransportAnswer(response: response, content: answer.content)
    }
}

extension Misconduct {
    /// An answer as a client with this misconduct takes it; `nil` where it is taken as it is.
    fileprivate func changed(_ response: HTTPURLResponse) -> HTTPURLResponse? {
        var fields: [String: String] = [:]
        for (name, value) in response.allHeaderFields {
            fields["\(name)".lowercased()] = "\(value)"
        }
        switch self {
        case .insists, .forgets: return nil
        case .obeysEveryone:
            guard response.statusCode == 401, fields["app-attest-error"] == nil else { return nil }
            fields["app-attest-error"] = "key-unknown;next=enrol"
        case .dropsChallenges:
            fields["app-attest-challenge"] = nil
            let words = fields["www-authenticate"]?.components(separatedBy: ", ")
            fields["www-authenticate"] = words?.filter { !$0.hasPrefix("challenge=") }
                .joined(separator: ", ")
        case .ignoresAdvice: fields["app-attest-next"] = nil
        }
        guard let url = response.url else { return nil }
        return HTTPURLResponse(
            url: url,
            statusCode: response.statusCode,
            httpVersion: "HTTP/1.1",
            headerFields: fields
        )
    }
}
