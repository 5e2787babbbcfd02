import Crypto
import Foundation
import PortcullisClient
import RequestBinding

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A gateway as a transport, without sockets: it checks what is really sent, byte by byte, against
/// what its one rule asks, and says what the real one says. The scenarios play the real one.
actor FakeGateway: HTTPTransport {
    struct Reply: Sendable {
        var status = 200
        var fields: [String: String] = [:]
        var content = Data("fine".utf8)
    }

    /// One request of the rule's, as it came.
    struct Seen: Sendable {
        let request: URLRequest
        let content: Data
        let verdict: String
    }

    static let origin = "https://api.example.com"
    static let endpoints = "\(origin)/.well-known/app-attest"

    /// What the rule asks.
    var requirement = SigningRequirement()
    /// Whether the rule refuses; else it tells.
    var enforces = true
    /// Whether every request is forwarded, and nothing said of what the rule asks.
    var forwards = false
    /// Replies in place of the origin's, by path.
    var origins: [String: Reply] = [:]
    /// Replies of the gateway's own in place of a verdict, by path, used up one by one.
    var busy: [String: [Reply]] = [:]
    /// Replies of an endpoint, used up one by one before it works.
    var troubles: [String: [Reply]] = [:]
    var sessionsAreOffered = true
    /// The plan that it serves, and what its answer has beside the usual fields.
    var plan: Data?
    var planFields: [String: String] = [:]
    /// Whether each answer brings a challenge.
    var bringsChallenges = true
    /// What it says of a key id beside a session; an older one says nothing.
    var acceptsKeyID: Bool? = true
    /// Whether a key id beside a session is malformed, as with an older one.
    var refusesKeyID = false

    private(set) var seen: [Seen] = []
    private(set) var calls: [String] = []
    /// The tags with which the plan was asked for.
    private(set) var planTags: [String?] = []
    /// Device tokens that came.
    private(set) var deviceTokens: [String] = []
    private var keys: Set<String> = []
    private var challenges: Set<String> = []
    private var sessions: [String: (secret: Data, used: Set<UInt64>, keyID: String)] = [:]
    private(set) var serial = 0

    init() {}

    func change(_ body: @Sendable (isolated FakeGateway) -> Void) { body(self) }

    /// Forgets everything, as with a new disk.
    func wipe() { (keys, challenges, sessions) = ([], [], [:]) }

    /// Forgets what a restart forgets.
    func restart() { (challenges, sessions) = ([], [:]) }

    static func attestation(_ keyID: String, _ hash: Data) -> Data {
        Data(SHA256.hash(data: Data("attest \(keyID)".utf8) + hash))
    }

    static func assertion(_ keyID: String, _ hash: Data) -> Data {
        Data(SHA256.hash(data: Data("assert \(keyID)".utf8) + hash))
    }

    func send(
        _ request: URLRequest,
        content: RequestContent
    ) async throws -> TransportAnswer {
        let data: Data =
            switch content {
            case .none: Data()
            case .data(let data): data
            case .file(let url): try Data(contentsOf: url)
            }
        var reply = self.reply(to: request, data)
        guard let url = request.url else { throw URLError(.badURL) }
        if bringsChallenges, reply.fields["App-Attest-Challenge"] == nil,
            url.absoluteString.hasPrefix(Self.origin)
        {
            reply.fields["App-Attest-Challenge"] = challenge()
        }
        guard
            let response = HTTPURLResponse(
                url: url,
                statusCode: reply.status,
                httpVersion: "HTTP/1.1",
                headerFields: reply.fields
            )
        else { throw URLError(.badServerResponse) }
        let pieces = PieceList(reply.content.isEmpty ? [] : [reply.content])
        return TransportAnswer(response: response, content: AnswerContent { await pieces.next() })
    }

    /// Answers what another library sends, whose content is its own or that of an upload.
    func answer(
        _ request: URLRequest,
        _ upload: RequestContent? = nil
    ) async throws -> (Data, HTTPURLResponse) {
        var content = upload ?? request.httpBody.map { .data($0) } ?? .none
        if let stream = request.httpBodyStream {
            stream.open()
            defer { stream.close() }
            var data = Data()
            var piece = [UInt8](repeating: 0, count: 65_536)
            while case let count = stream.read(&piece, maxLength: piece.count), count > 0 {
                data += piece[..<count]
            }
            content = .data(data)
        }
        let answer = try await send(request, content: content)
        var data = Data()
        for try await piece in answer.content { data += piece }
        return (data, answer.response)
    }

    private func reply(to request: URLRequest, _ content: Data) -> Reply {
        let text = request.url?.absoluteString ?? ""
        if text.hasPrefix(Self.endpoints + "/") {
            let name = String(text.dropFirst(Self.endpoints.count + 1))
            calls.append(name)
            if var left = troubles[name], !left.isEmpty {
                let reply = left.removeFirst()
                troubles[name] = left
                return reply
            }
            return endpoint(name, request, content)
        }
        guard text.hasPrefix(Self.origin + "/") else {
            seen.append(Seen(request: request, content: content, verdict: "elsewhere"))
            return origins[request.url?.path ?? ""] ?? Reply()
        }
        let path = request.url?.path ?? ""
        if var left = busy[path], !left.isEmpty {
            let reply = left.removeFirst()
            busy[path] = left
            seen.append(Seen(request: request, content: content, verdict: "busy"))
            return reply
        }
        let verdict = self.verdict(of: request, content, requirement)
        seen.append(Seen(request: request, content: content, verdict: verdict))
        if verdict == "pass" || forwards || !enforces || request.url?.path == "/free" {
            var reply = origins[request.url?.path ?? ""] ?? Reply()
            if verdict != "pass", !forwards, request.url?.path != "/free" {
                let next = verdict == "key-unknown" ? "enrol" : "sign-again"
                let isOfSession = verdict.hasPrefix("session-") && verdict != "session-replayed"
                reply.fields["App-Attest-Next"] =
                    next + parameters(";", counter: "counter=64")
                    + (isOfSession ? ";error=\"\(verdict)\"" : "")
            }
            return reply
        }
        return refusal(verdict)
    }

    // MARK: Verdicts

    private func verdict(
        of request: URLRequest,
        _ content: Data,
        _ requirement: SigningRequirement
    ) -> String {
        let value = { (name: String) in request.value(forHTTPHeaderField: name) }
        let sent = SentRequest(request, content)
        if let session = value("App-Attest-Session") {
            let verdict = verdict(session, request, sent, requirement)
            return verdict == "pass" ? deviceVerdict(of: request, requirement) : verdict
        }
        let fields = requirement.fields
        guard let keyID = value(fields.keyID), let assertion = value(fields.assertion)
        else { return "assertion-missing" }
        guard keys.contains(keyID) else { return "key-unknown" }
        let challenge = value(fields.challenge)
        guard let data = sent.clientData(requirement.form, challenge) else { return "app-mismatch" }
        let expected = Self.assertion(keyID, Data(SHA256.hash(data: data)))
        guard assertion == expected.base64EncodedString() else { return "signature-mismatch" }
        if requirement.challenge == .required {
            guard let challenge else { return "challenge-missing" }
            guard challenges.remove(challenge) != nil else { return "challenge-unknown" }
        }
        return deviceVerdict(of: request, requirement)
    }

    private func deviceVerdict(
        of request: URLRequest,
        _ requirement: SigningRequirement
    ) -> String {
        let token = request.value(forHTTPHeaderField: "App-Attest-Device-Token")
        guard requirement.needsDeviceToken else { return token == nil ? "pass" : "app-mismatch" }
        guard let token else { return "device-token-missing" }
        defer { deviceTokens.append(token) }
        return deviceTokens.contains(token) ? "device-token-used" : "pass"
    }

    private func verdict(
        _ name: String,
        _ request: URLRequest,
        _ sent: SentRequest,
        _ requirement: SigningRequirement
    ) -> String {
        guard requirement.accepts.contains(.session) else { return "session-refused" }
        let named = request.value(forHTTPHeaderField: "App-Attest-Key-Id")
        if named != nil, refusesKeyID { return "assertion-malformed" }
        guard let session = sessions[name] else { return "session-unknown" }
        guard named == nil || named == session.keyID else { return "session-mismatch" }
        guard let text = request.value(forHTTPHeaderField: "App-Attest-Sequence"),
            let number = UInt64(text),
            let data = sent.clientData(requirement.form, sequence: text)
        else { return "assertion-malformed" }
        let key = SymmetricKey(data: session.secret)
        let code = Data(HMAC<SHA256>.authenticationCode(for: data, using: key))
        let field = request.value(forHTTPHeaderField: "App-Attest-Signature")
        guard field == code.base64EncodedString() else { return "session-mismatch" }
        guard keys.contains(session.keyID) else { return "key-unknown" }
        guard sessions[name]?.used.insert(number).inserted == true else {
            return "session-replayed"
        }
        return "pass"
    }

    private func refusal(_ reason: String) -> Reply {
        let status =
            reason.hasPrefix("device-token") || reason == "assertion-malformed"
            ? 400 : reason == "signature-mismatch" || reason == "app-mismatch" ? 403 : 401
        let next =
            switch status {
            case 400: "fix-client"
            case 403: "none"
            default: reason == "key-unknown" ? "enrol" : "sign-again"
            }
        var reply = Reply(status: status)
        reply.fields["App-Attest-Error"] = "\(reason);next=\(next)"
        reply.fields["Content-Type"] = "application/problem+json"
        if status == 401 {
            let challenge = next == "sign-again" ? ", challenge=\"\(challenge())\"" : ""
            reply.fields["WWW-Authenticate"] =
                "AppAttest error=\"\(reason)\", next=\"\(next)\"\(challenge)"
                + parameters(",", counter: "counter=\"64\"")
        }
        reply.content = Data("{\"status\":\(status),\"reason\":\"\(reason)\"}".utf8)
        return reply
    }

    private func parameters(_ separator: String, counter: String) -> String {
        var sign = ""
        var names = ""
        switch requirement.form {
        case .content: sign = "content"
        case .challenge: sign = "challenge-text"
        case .lines(let parts, let headers):
            let words: [(SignedParts, String)] = [
                (.method, "method"), (.target, "target"), (.body, "body"),
                (.challenge, "challenge"),
            ]
            sign = words.filter { parts.contains($0.0) }.map(\.1).joined(separator: " ")
            names = headers.joined(separator: " ")
        }
        let accepts = ["assertion", "session"]
            .filter { name in requirement.accepts.contains { $0.rawValue == name } }
            .joined(separator: " ")
        return "\(separator)sign=\"\(sign)\"\(separator)headers=\"\(names)\""
            + "\(separator)accept=\"\(accepts)\""
            + (requirement.counter == .window(64) ? separator + counter : "")
            + (requirement.needsDeviceToken ? separator + "device=\"token\"" : "")
    }

    // MARK: Endpoints

    private func endpoint(_ name: String, _ request: URLRequest, _ content: Data) -> Reply {
        struct Ask: Decodable {
            let purpose: String
            let count: Int?
        }
        struct Bring: Decodable {
            let key_id: String
            let attestation: Data
            let challenge: String
            let context: Data?
        }
        switch name {
        case "challenges":
            guard let ask = try? JSONDecoder().decode(Ask.self, from: content) else {
                return Reply(status: 400)
            }
            let texts = (0..<(ask.count ?? 1)).map { _ in "\"\(challenge())\"" }
            let list = texts.joined(separator: ",")
            return Reply(content: Data("{\"challenges\":[\(list)],\"expires_in\":300}".utf8))
        case "keys":
            guard let bring = try? JSONDecoder().decode(Bring.self, from: content) else {
                return Reply(status: 400)
            }
            let digest = bring.context.map { Array(SHA256.hash(data: $0)) }
            let data = EnrolmentLines.clientData(challenge: bring.challenge, contextDigest: digest)
            let expected = Self.attestation(bring.key_id, Data(SHA256.hash(data: data)))
            guard bring.attestation == expected else { return Self.problem(403, "nonce-mismatch") }
            keys.insert(bring.key_id)
            return Reply(status: 201, content: Data("{\"key_id\":\"\(bring.key_id)\"}".utf8))
        case "sessions" where sessionsAreOffered:
            let verdict = verdict(of: request, content, SigningRequirement())
            guard verdict == "pass" else { return refusal(verdict) }
            serial += 1
            let secret = Data(SHA256.hash(data: Data("secret \(serial)".utf8)))
            let keyID = request.value(forHTTPHeaderField: "App-Attest-Key-Id") ?? ""
            sessions["session-\(serial)"] = (secret, [], keyID)
            let text =
                "{\"session\":\"session-\(serial)\",\"secret\":\"\(secret.base64EncodedString())\","
                + "\"expires_in\":600,\"window\":256"
                + (acceptsKeyID.map { ",\"accepts_key_id\":\($0)}" } ?? "}")
            return Reply(status: 201, content: Data(text.utf8))
        case "plan" where plan != nil:
            let content = plan ?? Data()
            let tag = "\"\(Data(SHA256.hash(data: content).prefix(8)).base64EncodedString())\""
            let usual = [
                "ETag": tag, "Cache-Control": "public, max-age=300",
                "Content-Type": "application/json",
            ]
            let fields = usual.merging(planFields) { $1 }
            planTags.append(request.value(forHTTPHeaderField: "If-None-Match"))
            return planTags.last == tag
                ? Reply(status: 304, fields: fields, content: Data())
                : Reply(fields: fields, content: content)
        default: return Self.problem(404, "no-such-endpoint", next: "none")
        }
    }

    /// A refusal of the gateway's own.
    static func problem(
        _ status: Int,
        _ reason: String,
        next: String = "enrol",
        retryAfter: Int? = nil
    ) -> Reply {
        var fields = [
            "Content-Type": "application/problem+json",
            "App-Attest-Error": "\(reason);next=\(next)",
        ]
        if let retryAfter { fields["Retry-After"] = "\(retryAfter)" }
        let text = "{\"status\":\(status),\"reason\":\"\(reason)\",\"next\":\"\(next)\"}"
        return Reply(status: status, fields: fields, content: Data(text.utf8))
    }

    /// The same document, of an origin or of something in between: without the gateway's mark.
    static func forgery(_ status: Int, _ reason: String, next: String = "enrol") -> Reply {
        var reply = problem(status, reason, next: next)
        reply.fields["App-Attest-Error"] = nil
        return reply
    }

    private func challenge() -> String {
        serial += 1
        challenges.insert("challenge-\(serial)")
        return "challenge-\(serial)"
    }
}
