import Foundation
import PortcullisClient

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
    func call<Answer: Decodable>(_ path: String, _ content: some Encodable) async throws -> Answer {
        var request = URLRequest(url: server.appending(path: path))
        request.httpMethod = "POST"
        request.timeoutInterval = Self.patience
        request.httpBody = try JSONEncoder().encode(content)
        let (data, response) = try await Self.session.data(for: request)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else {
            throw DriverFault(try JSONDecoder().decode([String: String].self, from: data)["error"])
        }
        return try JSONDecoder().decode(Answer.self, from: data)
    }
}

/// Why a step, or a call of the device, can't be done.
struct DriverFault: Error, CustomStringConvertible {
    let description: String

    init(_ description: String?) { self.description = description ?? "no answer" }
}

/// The device of the proving ground.
struct RemoteDevice: AttestationService, DeviceTokenService {
    private let calls: RemoteCalls
    let isSupported: Bool

    init(_ server: URL, isSupported: Bool) {
        (calls, self.isSupported) = (RemoteCalls(server), isSupported)
    }

    func generateKey() async throws(AttestationServiceError) -> String {
        try await text("key_id", of: "/keys")
    }

    func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        try await data("attestation", of: "/attest", key: keyID, hash: clientDataHash)
    }

    func generateAssertion(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        try await data("assertion", of: "/assert", key: keyID, hash: clientDataHash)
    }

    func generateToken() async throws(AttestationServiceError) -> Data {
        try await data("token", of: "/device-token")
    }

    private func data(
        _ member: String,
        of path: String,
        key: String? = nil,
        hash: Data? = nil
    ) async throws(AttestationServiceError) -> Data {
        var content: [String: String] = [:]
        (content["key_id"], content["hash"]) = (key, hash?.base64EncodedString())
        guard let data = Data(base64Encoded: try await text(member, of: path, content)) else {
            throw .unknownSystemFailure
        }
        return data
    }

    private func text(
        _ member: String,
        of path: String,
        _ content: [String: String] = [:]
    ) async throws(AttestationServiceError) -> String {
        do {
            let answer: [String: String] = try await calls.call(path, content)
            guard let text = answer[member] else { throw DriverFault("no \(member)") }
            return text
        } catch {
            let words: [String: AttestationServiceError] = [
                "serverUnavailable": .serverUnavailable, "invalidKey": .invalidKey,
                "invalidInput": .invalidInput, "featureUnsupported": .featureUnsupported,
            ]
            throw words["\(error)"] ?? .unknownSystemFailure
        }
    }
}
