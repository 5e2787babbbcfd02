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
        try await data("attestation", of: "/attest", keyID, clientDataHash)
    }

    func generateAssertion(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        try await data("assertion", of: "/assert", keyID, clientDataHash)
    }

    func generateToken() async throws(AttestationServiceError) -> Data {
        try await data("token", of: "/device-token")
    }

    private func data(
        _ member: String,
        of path: String,
        _ keyID: String? = nil,
        _ hash: Data? = nil
    ) async throws(AttestationServiceError) -> Data {
        var content: [String: String] = [:]
        (content["key_id"], content["hash"]) = (keyID, hash?.base64EncodedString())
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
}
