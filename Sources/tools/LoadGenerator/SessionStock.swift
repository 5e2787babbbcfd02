import Cryptography
import Encodings
import EventLoops
import RequestBinding
import Rules

/// The sessions of an event loop's devices. Signs with them.
struct SessionStock {
    private struct Open {
        let id: [UInt8]
        let keyID: [UInt8]
        let secret: HMACSHA256.Key
        var next = SequenceNumber.first
        /// A time of the monotonic clock.
        let goodUntil: UInt64
    }

    private let template: RequestTemplate
    private var sessions: [Open?]
    /// The key ids of devices that have asked for a session, as texts.
    private var keyIDs: [[UInt8]]
    /// The number of signatures, and the nanoseconds for all of them.
    private(set) var signedCount: UInt64 = 0
    private(set) var signingNanoseconds: UInt64 = 0

    init(_ template: RequestTemplate, deviceCount: Int) {
        self.template = template
        sessions = Array(repeating: nil, count: deviceCount)
        keyIDs = Array(repeating: [], count: deviceCount)
    }

    /// Signs a content with a device's session; `nil` when the device has no valid session.
    mutating func sign(device: Int, content: Int, now: UInt64) -> ProofTexts? {
        let start = MonotonicClock.nanoseconds
        guard case .lines(let parts, _) = template.demand.signing,
            let session = sessions[device], now < session.goodUntil,
            let following = session.next.next
        else { return nil }
        sessions[device]?.next = following
        let sequence = Array(session.next.text.utf8)
        let lines = template.lines(content, parts.inSession, last: sequence)
        let proof = ProofTexts(
            keyID: session.keyID,
            assertion: Base64.encode(session.secret.code(lines.span).array),
            session: (session.id, sequence)
        )
        signedCount += 1
        signingNanoseconds += MonotonicClock.nanoseconds - start
        return proof
    }

    mutating func ask(_ device: Int, keyID: [UInt8]) { keyIDs[device] = keyID }

    /// Reads the gateway's answer; an unreadable one has no effect.
    mutating func open(_ content: [UInt8], of device: Int, now: UInt64) {
        let members: Set = ["session", "secret", "expires_in"]
        guard let document = JSONDocument(content.span, members: members),
            let id = document.string("session"), let seconds = document.integer("expires_in"),
            let secret = document.string("secret").flatMap({ Base64.decode($0) })
        else { return }
        // The session is renewed before it ends, since the gateway's clock ticks in seconds.
        let good = UInt64(clamping: min(max(seconds - 1, 0), Self.secondsMax)) * 900_000_000
        sessions[device] = Open(
            id: Array(id.utf8),
            keyID: keyIDs[device],
            secret: HMACSHA256.Key(secret.span),
            goodUntil: now + good
        )
    }

    /// A longer session is renewed after this time.
    private static let secondsMax = 86_400

    /// Forgets a session that the gateway does not know.
    mutating func drop(_ device: Int) { sessions[device] = nil }
}
