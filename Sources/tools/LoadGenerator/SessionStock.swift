import Cryptography
import Encodings
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

    /// The texts of a request.
    struct Texts {
        var id: [UInt8] = []
        /// Load balancers use it.
        var keyID: [UInt8] = []
        var sequence: [UInt8] = []
        var signature: [UInt8] = []
    }

    private let template: RequestTemplate
    private var sessions: [Open?]
    /// The key ids of devices that have asked for a session, as texts.
    private var keyIDs: [[UInt8]]
    private var lines = RequestLines()
    /// The number of signatures, and the nanoseconds for all of them.
    private(set) var signedCount: UInt64 = 0
    private(set) var signingNanoseconds: UInt64 = 0

    init(_ template: RequestTemplate, deviceCount: Int) {
        self.template = template
        sessions = Array(repeating: nil, count: deviceCount)
        keyIDs = Array(repeating: [], count: deviceCount)
    }

    /// Counts the time of a signature, by the caller's clock.
    mutating func note(nanoseconds spent: UInt64) {
        signedCount += 1
        signingNanoseconds += spent
    }

    /// Signs a content with a device's session; `false` when the device has no valid session.
    mutating func sign(device: Int, content: Int, now: UInt64, into texts: inout Texts) -> Bool {
        guard case .lines(let parts, _) = template.demand.signing,
            var session = sessions[device], now < session.goodUntil,
            let following = session.next.next
        else { return false }
        texts.sequence.removeAll(keepingCapacity: true)
        texts.sequence += session.next.text.utf8
        let before = template.contents[content].linesBefore
        lines.resume(behind: before, parts.inSession, hasDigest: true)
        template.finish(&lines, challenge: texts.sequence.span)
        let bytes = lines.bytes
        let code = session.secret.code(bytes.span).bytes
        texts.signature.removeAll(keepingCapacity: true)
        Base64.append(code.span, to: &texts.signature)
        texts.id = session.id
        texts.keyID = session.keyID
        session.next = following
        sessions[device] = session
        return true
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
        let good = UInt64(clamping: max(seconds - 1, 0)) * 900_000_000
        sessions[device] = Open(
            id: Array(id.utf8),
            keyID: keyIDs[device],
            secret: HMACSHA256.Key(secret.span),
            goodUntil: now + good
        )
    }

    /// Forgets a session that the gateway does not know.
    mutating func drop(_ device: Int) { sessions[device] = nil }
}

extension RequestTemplate {
    /// Writes a request that is signed with a session, into memory that was used for another.
    func write(
        _ texts: SessionStock.Texts,
        _ sending: Sending,
        content: Int,
        into message: inout Message
    ) {
        begin(sending, into: &message)
        // A rule with other field names takes no key id besides a session.
        if demand.fields.keyID == FieldNames.standard.keyID {
            field(demand.fields.keyID, texts.keyID, into: &message.head)
        }
        field(Self.sessionName, texts.id, into: &message.head)
        field(Self.sequenceName, texts.sequence, into: &message.head)
        field(Self.signatureName, texts.signature, into: &message.head)
        if sending == .tamperedSignature {
            // Any character but the last two, which hold bits that must be zero.
            let place = message.head.count - 10
            let isA = message.head[place] == UInt8(ascii: "A")
            message.head[place] = UInt8(ascii: isA ? "B" : "A")
        }
        end(contents[content], content, sending, into: &message)
    }

    private static let sessionName = Array("App-Attest-Session".utf8)
    private static let sequenceName = Array("App-Attest-Sequence".utf8)
    private static let signatureName = Array("App-Attest-Signature".utf8)
}
