#if canImport(FoundationNetworking)
    import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A request that was signed for another sender, to be sent once.
///
/// It belongs to the moment: a challenge lives for minutes, and the proof is good for one try. A
/// system that sends it again by itself, as background sessions do, is answered 401. Then
/// ``PortcullisSession/signAgain(_:after:)`` makes the next one.
///
/// It can be encoded, so that ``PortcullisSession/signAgain(_:after:)`` works in a process that is
/// launched for the answer. What is encoded holds the content, where that is in memory, and all
/// fields, credentials included: keep it where only the app reads it.
public struct SignedRequest: Sendable {
    /// What to send, as it stands. Where it was made for a file, upload that file with it.
    public let request: URLRequest
    /// What it carries. `.none(.enrolling)` where the key is not enrolled yet, and is being
    /// enrolled: ``PortcullisSession/sign(_:)-(URLRequest)`` has begun that, without an answer.
    /// `.none(.routeUnknown)` where it has not, since nothing is known of the route.
    public let proof: SentProof
    /// Whether it carries a device token.
    public let deviceToken: DeviceTokenOutcome

    let canonical: CanonicalRequest
    let content: ReplayableContent
    let session: String?
    let progress: RequestMachine.Progress
    /// How much longer it waits; `nil` in another process, where its time begins again.
    let patience: Patience?

    init(
        _ proven: ProvenRequest,
        request: URLRequest,
        canonical: CanonicalRequest,
        content: ReplayableContent,
        machine: RequestMachine
    ) {
        self.request = request
        proof = proven.proof
        deviceToken = proven.deviceToken
        session = proven.session
        (self.canonical, self.content) = (canonical, content)
        (progress, patience) = (machine.progress, machine.patience)
    }
}

extension SignedRequest: Codable {
    /// A request without its content.
    private struct Head: Codable {
        let url: URL
        let method: String
        let fields: [String: String]
        let timeout: Double
        let cachePolicy: UInt
        let serviceType: UInt
        let allowsCellular: Bool
        /// `nil` on Linux, which knows no such networks.
        let allowsExpensive: Bool?
        let allowsConstrained: Bool?
        let handlesCookies: Bool
    }

    private enum Key: String, CodingKey {
        case version, request, canonical, content, isAttached, proof, deviceToken, session, progress
    }

    private static let version = 1

    /// Reads a request that another process has signed.
    ///
    /// - Throws: `DecodingError` where it is none of this version.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        let unfit = { (key: Key) in
            DecodingError.dataCorruptedError(
                forKey: key,
                in: values,
                debugDescription: "This version of the library can't go on with it."
            )
        }
        guard try values.decode(Int.self, forKey: .version) == Self.version else {
            throw unfit(.version)
        }
        var request = Self.request(try values.decode(Head.self, forKey: .request))
        let caller = Self.request(try values.decode(Head.self, forKey: .canonical))
        guard let canonical = CanonicalRequest(caller, isHandshake: true) else {
            throw unfit(.canonical)
        }
        content = try values.decode(ReplayableContent.self, forKey: .content)
        let isAttached = try values.decode(Bool.self, forKey: .isAttached)
        if isAttached, case .data(let data) = content.content { request.httpBody = data }
        (self.request, self.canonical) = (request, canonical)
        proof = try values.decode(SentProof.self, forKey: .proof)
        deviceToken = try values.decode(DeviceTokenOutcome.self, forKey: .deviceToken)
        session = try values.decodeIfPresent(String.self, forKey: .session)
        progress = try values.decode(RequestMachine.Progress.self, forKey: .progress)
        patience = nil
    }

    /// Writes what another process needs in order to send the request, or to sign it again.
    ///
    /// - Throws: ``PortcullisError/contentUnreadable`` for a request that was made with a stream:
    ///   its temporary file goes with this process. Sign it for a file.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Key.self)
        try values.encode(Self.version, forKey: .version)
        try values.encode(try Self.head(request), forKey: .request)
        try values.encode(try Self.head(canonical.request), forKey: .canonical)
        try values.encode(content, forKey: .content)
        try values.encode(request.httpBody != nil, forKey: .isAttached)
        try values.encode(proof, forKey: .proof)
        try values.encode(deviceToken, forKey: .deviceToken)
        try values.encodeIfPresent(session, forKey: .session)
        try values.encode(progress, forKey: .progress)
    }

    private static func head(_ request: URLRequest) throws -> Head {
        guard let url = request.url else { throw PortcullisError.urlUnfit }
        let networks = Self.networks(of: request)
        return Head(
            url: url,
            method: request.httpMethod ?? "GET",
            fields: request.allHTTPHeaderFields ?? [:],
            timeout: request.timeoutInterval,
            cachePolicy: request.cachePolicy.rawValue,
            serviceType: request.networkServiceType.rawValue,
            allowsCellular: request.allowsCellularAccess,
            allowsExpensive: networks.expensive,
            allowsConstrained: networks.constrained,
            handlesCookies: request.httpShouldHandleCookies
        )
    }

    /// Whether a request may go over networks that the system calls so.
    private static func networks(
        of request: URLRequest
    ) -> (expensive: Bool?, constrained: Bool?) {
        #if canImport(FoundationNetworking)
            (nil, nil)
        #else
            (request.allowsExpensiveNetworkAccess, request.allowsConstrainedNetworkAccess)
        #endif
    }

    private static func request(_ head: Head) -> URLRequest {
        var request = URLRequest(url: head.url)
        request.httpMethod = head.method
        request.allHTTPHeaderFields = head.fields
        request.timeoutInterval = head.timeout
        request.cachePolicy = .init(rawValue: head.cachePolicy) ?? request.cachePolicy
        request.networkServiceType = .init(rawValue: head.serviceType) ?? .default
        request.allowsCellularAccess = head.allowsCellular
        #if !canImport(FoundationNetworking)
            request.allowsExpensiveNetworkAccess = head.allowsExpensive ?? true
            request.allowsConstrainedNetworkAccess = head.allowsConstrained ?? true
        #endif
        request.httpShouldHandleCookies = head.handlesCookies
        return request
    }
}
