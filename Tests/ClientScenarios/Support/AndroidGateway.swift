import AppAttest
import Cryptography
import Encodings
import Foundation
import KeyAttestation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Synchronization

/// A gateway as far as an Android app sees it: it judges every byte that it is sent, and refuses
/// what a test wants refused. It attests keys of software phones, too, and makes their tokens of
/// Play Integrity.
final class AndroidGateway: Sendable {
    /// An answer in the place of a judgement.
    struct Refusal: Sendable {
        var status = 401
        var reason: String
        /// `nil` for an answer of something else.
        var next: String?
        var fields = ""
    }

    /// What the rule asks for.
    struct Rule: Sendable {
        var headers: [String] = []
        var isStrict = false
        var takesSessions = false
    }

    private struct Key {
        let publicKey: P256PublicKey
        let level: SecurityLevel
        var counters: Set<UInt32> = []
    }

    /// Calls that are answered together.
    private struct Crowd {
        /// Of the targets.
        let end: String
        let size: Int
        let gate = Gate()
        var missing: Int
    }

    private struct State {
        var crowd: Crowd?
        var issued = 0
        var open: Set<String> = []
        var keys: [String: Key] = [:]
        /// The key that has opened each.
        var sessions: [String: String] = [:]
        var rule = Rule()
        /// By the end of the target.
        var refusals: [String: [Refusal]] = [:]
        var requests: [WireRequest] = []
    }

    private static let authority = SoftwareAuthority(
        seed: [30, 6],
        madeAt: UnixTime(seconds: Int64(Date().timeIntervalSince1970))
    )
    private static let endpoints = "/.well-known/app-attest/"
    /// Of all sessions.
    private static let secret = [UInt8](0..<32)
    /// Makes classic tokens: the client can't tell them from others.
    static let console = SoftwarePlayConsole()

    /// Shared with the threads that answer.
    private final class Shared: Sendable {
        let state = Mutex(State())
    }

    private let shared = Shared()
    private let origin: TestOrigin
    /// Where it listens.
    var address: String { origin.address }

    init() throws {
        origin = try TestOrigin { [shared] connection in
            while let request = try connection.nextRequest() {
                try Self.awaitCrowd(of: request, shared)
                let answer = try Self.answer(to: request, shared)
                try connection.answer(
                    answer.status,
                    body: answer.body,
                    fields: answer.fields,
                    to: request
                )
            }
        }
    }

    /// The authority of the phones.
    static var rootPEM: String { authority.rootPEM }

    /// Where keys and tokens are made.
    var makers: String { "http://\(address)/" }

    func stop() { origin.stop() }

    // MARK: What a test says and asks

    /// Refuses the next calls whose targets end so.
    func refuse(_ end: String, _ refusal: Refusal, times: Int = 1) {
        shared.state.withLock {
            $0.refusals[end, default: []] += Array(repeating: refusal, count: times)
        }
    }

    /// Answers the next calls whose targets end so once so many have come.
    func gather(_ end: String, _ count: Int) {
        shared.state.withLock { $0.crowd = Crowd(end: end, size: count, missing: count) }
    }

    /// Judges by another rule.
    func rule(_ rule: Rule) { shared.state.withLock { $0.rule = rule } }

    /// What came since the last call, by the end of its target.
    func requests(_ end: String) -> [WireRequest] {
        shared.state.withLock { state in
            let found = state.requests.filter { $0.target.hasSuffix(end) }
            state.requests.removeAll { $0.target.hasSuffix(end) }
            return found
        }
    }

    var levels: [SecurityLevel] { shared.state.withLock { $0.keys.values.map(\.level) } }

    /// The numbers that were signed, of all keys.
    var counters: [UInt32] {
        shared.state.withLock { $0.keys.values.flatMap(\.counters).sorted() }
    }

    // MARK: Judging

    private struct Answer {
        var status = 200
        var body = ""
        var fields = ""

        static func refused(_ refusal: Refusal, _ more: String = "") -> Answer {
            guard let next = refusal.next else {
                return Answer(status: refusal.status, body: "no", fields: refusal.fields)
            }
            return Answer(
                status: refusal.status,
                body: #"{"reason":"\#(refusal.reason)"}"#,
                fields: "App-Attest-Error: \(refusal.reason);next=\(next)\r\n"
                    + refusal.fields + more
            )
        }
    }

    private static func awaitCrowd(of request: WireRequest, _ shared: Shared) throws {
        let gate: Gate? = shared.state.withLock { state in
            guard let crowd = state.crowd, request.target.hasSuffix(crowd.end) else { return nil }
            state.crowd?.missing -= 1
            if crowd.missing == 1 {
                for _ in 0..<crowd.size { crowd.gate.open() }
                state.crowd = nil
            }
            return crowd.gate
        }
        try gate?.pass()
    }

    private static func answer(
        to request: WireRequest,
        _ shared: Shared
    ) throws -> Answer {
        if request.target == "/attest" {
            return Answer(body: try AndroidApp.attested(request.body, by: authority))
        }
        if request.target == "/token" { return Answer(body: try token(request.body)) }
        return shared.state.withLock { state in
            state.requests.append(request)
            if let end = state.refusals.keys.first(where: request.target.hasSuffix),
                let refusal = state.refusals[end]?.first
            {
                state.refusals[end]?.removeFirst()
                if state.refusals[end]?.isEmpty == true { state.refusals[end] = nil }
                let isProof = refusal.next == "sign-again"
                return .refused(refusal, isProof ? challenge(&state) : "")
            }
            switch request.target {
            case endpoints + "challenges": return challenges(request, &state)
            case endpoints + "keys": return enrolled(request, &state)
            case endpoints + "sessions": return opened(request, &state)
            default:
                return request.head.has("app-attest-session")
                    ? judgedInSession(request, &state) : judged(request, &state)
            }
        }
    }

    private static func issue(_ state: inout State) -> String {
        state.issued += 1
        let text = "Challenge_\(state.issued)-" + String(repeating: "x", count: 32)
        state.open.insert(text)
        return text
    }

    private static func challenge(_ state: inout State) -> String {
        "App-Attest-Challenge: \(issue(&state))\r\n" + lesson(state.rule)
    }

    private static func lesson(_ rule: Rule) -> String {
        let headers =
            rule.headers.isEmpty ? "" : #", headers="\#(rule.headers.joined(separator: " "))""#
        let counter =
            (rule.takesSessions ? #", accept="assertion session""# : "")
            + (rule.isStrict ? "" : #", counter="64""#)
        return #"WWW-Authenticate: Basic realm="x", AppAttest error="x", "#
            + #"sign="method target body challenge"\#(headers)\#(counter)"# + "\r\n"
    }

    private static func challenges(_ request: WireRequest, _ state: inout State) -> Answer {
        switch String(decoding: request.body, as: UTF8.self) {
        case #"{"purpose":"enrolment"}"#:
            return Answer(body: #"{"challenges":["\#(issue(&state))"],"expires_in":3600}"#)
        case let text where (4...8).contains { text == #"{"purpose":"assertion","count":\#($0)}"# }:
            let count = text.compactMap(\.wholeNumberValue).first ?? 0
            let texts = (0..<count).map { _ in "\"\(issue(&state))\"" }.joined(separator: ",")
            return Answer(body: #"{"challenges":[\#(texts)],"expires_in":300}"#)
        default: return .refused(Refusal(status: 400, reason: "request-malformed", next: "none"))
        }
    }

    private struct Enrolment: Decodable {
        let platform: String
        let key_id: String
        let chain: [String]
        let challenge: String
        let context: String?
    }

    private static func enrolled(_ request: WireRequest, _ state: inout State) -> Answer {
        guard let call = try? JSONDecoder().decode(Enrolment.self, from: Data(request.body)),
            call.platform == "android", state.open.contains(call.challenge)
        else { return .refused(Refusal(status: 400, reason: "request-malformed", next: "none")) }
        let clientData = EnrolmentLines.clientData(
            challenge: call.challenge,
            contextDigest: call.context.flatMap { Base64.decode($0) }
                .map { SHA256.digest(of: $0).array }
        )
        do {
            let chain = call.chain.compactMap { Base64.decode($0) }
            let verified = try UnverifiedKeyAttestation(chain: chain).verified(
                challenge: SHA256.digest(of: clientData).array,
                app: ExpectedAndroidApp(
                    package: AndroidApp.package,
                    signers: [SoftwarePhone.signer],
                    policy: .standard
                ),
                roots: [authority.root],
                statusList: .empty,
                at: UnixTime(seconds: Int64(Date().timeIntervalSince1970))
            )
            guard verified.keyID.base64 == call.key_id else {
                return .refused(Refusal(status: 403, reason: "key-id-mismatch", next: "none"))
            }
            state.keys[call.key_id] = Key(
                publicKey: verified.publicKey,
                level: verified.description.keyMintLevel
            )
            return Answer(status: 201, body: #"{"key_id":"\#(call.key_id)"}"#)
        } catch {
            return .refused(Refusal(status: 403, reason: "\(error)", next: "none"))
        }
    }

    /// A token for `REQUEST-HASH KIND`.
    private static func token(_ content: [UInt8]) throws -> String {
        let words = String(decoding: content, as: UTF8.self).split(separator: " ")
        guard words.count == 2 else {
            throw ChildProcess.Failure(description: "what a token is to say is malformed")
        }
        var verdict = SoftwarePlayVerdict(
            clientDataHash: [],
            at: Int64(Date().timeIntervalSince1970 * 1_000),
            signer: SoftwarePhone.signer
        )
        verdict.hash = String(words[0])
        if words[1] == "old" { verdict.milliseconds -= 400_000 }
        return try console.token(verdict.json)
    }

    private static func opened(_ request: WireRequest, _ state: inout State) -> Answer {
        var answer = judged(request, &state)
        guard answer.status == 200, let keyID = request.head.value("app-attest-key-id") else {
            return answer
        }
        let id = "session-\(state.sessions.count)"
        state.sessions[id] = keyID
        answer.status = 201
        answer.body = """
            {"session":"\(id)","secret":"\(Base64.text(secret))","expires_in":600,"window":256,\
            "accepts_key_id":true}
            """
        return answer
    }

    private static func judgedInSession(_ request: WireRequest, _ state: inout State) -> Answer {
        let session = request.head.value("app-attest-session").flatMap { id in
            state.sessions[id].map { (id, $0) }
        }
        guard let (id, keyID) = session else {
            let refusal = Refusal(reason: "session-unknown", next: "sign-again")
            return .refused(refusal, challenge(&state))
        }
        let number = request.head.value("app-attest-sequence").flatMap { UInt64($0) } ?? 0
        var expected = SequenceNumber(number).flatMap { number in
            SoftwareSession(id: id, secret: secret).proof(
                of: .init(method: request.method, target: request.target, content: request.body),
                signing: .lines(.all, headers: []),
                as: number
            )
        }
        expected?.keyID = keyID
        let isGood =
            expected?.fields.allSatisfy { request.head.value($0.name) == $0.value } ?? false
        guard isGood, !request.head.has("app-attest-assertion"),
            !request.head.has("app-attest-challenge")
        else { return .refused(Refusal(reason: "session-mismatch", next: "none"), "") }
        return Answer(body: "ok")
    }

    private static func judged(_ request: WireRequest, _ state: inout State) -> Answer {
        let rule = state.rule
        func again(_ reason: String) -> Answer {
            .refused(Refusal(reason: reason, next: "sign-again"), challenge(&state))
        }
        guard let assertion = request.head.value("app-attest-assertion") else {
            return again("assertion-missing")
        }
        guard let id = request.head.value("app-attest-key-id"), var key = state.keys[id] else {
            return .refused(Refusal(reason: "key-unknown", next: "enrol"))
        }
        let text = request.head.value("app-attest-challenge")
        guard text.map(state.open.contains) ?? false else { return again("challenge-spent") }
        let digest = SHA256.digest(of: request.body).array
        let member = request.body.isEmpty ? nil : "sha-256=:\(Base64.text(digest)):"
        let lines = RequestLines.clientData(
            .all,
            of: RequestLines.Request(
                method: request.method,
                target: request.target,
                digest: digest,
                headers: rule.headers.map { ($0, request.head.value($0)) }
            ),
            challenge: text
        )
        guard let signature = UnverifiedKeySignature(Array(assertion.utf8)),
            request.head.value("content-digest") == member,
            signature.isValid(
                clientDataHash: SHA256.digest(of: lines).array,
                package: AndroidApp.package,
                key: key.publicKey,
                after: .zero
            )
        else {
            return .refused(Refusal(status: 403, reason: "signature-mismatch", next: "none"))
        }
        let number = signature.counter.rawValue
        let isFresh =
            rule.isStrict
            ? number > key.counters.max() ?? 0 : !key.counters.contains(number) && number > 0
        guard isFresh else { return again("counter-replayed") }
        if let text { state.open.remove(text) }
        key.counters.insert(number)
        state.keys[id] = key
        return Answer(body: "ok", fields: "App-Attest-Challenge: \(issue(&state))\r\n")
    }
}
