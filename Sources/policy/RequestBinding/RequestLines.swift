import Encodings

/// Writes the line form of the client data: the one place that knows the order of the lines, and
/// that a part which is not signed is written as "-".
///
/// A caller gives every part in turn, signed or not: ``begin(_:method:)``, ``target(_:)``,
/// ``digest(_:)``, ``challenge(_:)``, then the signed fields. A call out of turn is a bug of the
/// caller and traps. The buffer is kept, so that a gateway can use one for all requests of an event
/// loop.
public struct RequestLines: Sendable {
    /// The lines so far.
    public private(set) var bytes: [UInt8] = []

    /// The part that is written next.
    private enum Turn {
        case method, target, digest, challenge, fields

        /// The part of this step.
        var part: SignedParts {
            switch self {
            case .method: .method
            case .target: .target
            case .digest: .body
            case .challenge: .challenge
            case .fields: []
            }
        }

        var next: Turn {
            switch self {
            case .method: .target
            case .target: .digest
            case .digest: .challenge
            case .challenge, .fields: .fields
            }
        }
    }

    private var turn = Turn.method
    private var parts = SignedParts()
    private var hasValue = false

    private static let version = Array("portcullis-request-v1\n".utf8)
    private static let digestStart = Array("sha-256=:".utf8)
    /// Not an array: `Array.span` is only on Apple's systems since 26.
    private static let digestEnd = ContiguousArray(":".utf8)
    private static let lineFeed = UInt8(ascii: "\n")
    private static let absent = UInt8(ascii: "-")

    /// No lines; call ``begin(_:method:)`` first.
    public init() {}

    /// Whether a part's text equals the sign for a part that is not signed. Such a text must not be
    /// signed.
    public static func readsAsAbsent(_ text: Span<UInt8>) -> Bool {
        text.count == 1 && text[0] == absent
    }

    // MARK: The four parts

    /// Forgets the last request and keeps its memory; writes version and method.
    ///
    /// - Parameters:
    ///   - parts: what is signed.
    ///   - method: as in the request line.
    public mutating func begin(_ parts: SignedParts, method: Span<UInt8>) {
        bytes.removeAll(keepingCapacity: true)
        bytes.append(contentsOf: Self.version)
        self.parts = parts
        turn = .method
        line(.method, method)
    }

    /// Writes the target, in origin-form as in the request line.
    public mutating func target(_ target: Span<UInt8>) { line(.target, target) }

    /// Writes the origin-form of an absolute target without a path: a slash, then its query.
    public mutating func target(behindSlash query: Span<UInt8>) {
        if parts.contains(.target) { bytes.append(UInt8(ascii: "/")) }
        line(.target, query)
    }

    /// Writes the `Content-Digest` member for sha-256 (RFC 9530 §2), in its one canonical spelling.
    ///
    /// - Parameter digest: SHA-256 of the content, 32 bytes; `nil` where it is not known because
    ///   the content is not signed.
    public mutating func digest(_ digest: Span<UInt8>?) {
        guard parts.contains(.body), let digest else { return line(.digest, nil) }
        bytes.append(contentsOf: Self.digestStart)
        Base64.append(digest, to: &bytes)
        line(.digest, Self.digestEnd.span)
    }

    /// Writes words in place of a digest, for a description that people read.
    package mutating func digest(describedAs words: Span<UInt8>) { line(.digest, words) }

    /// Writes the text of the challenge; `nil` for a request that has none.
    public mutating func challenge(_ challenge: Span<UInt8>?) { line(.challenge, challenge) }

    // MARK: Fields

    /// Begins the line of a signed field; then ``value(_:)`` for each of its lines, then
    /// ``endHeader()``.
    public mutating func header(_ name: Span<UInt8>) {
        expect(.fields)
        append(name)
        hasValue = false
    }

    /// Adds one field line's value to the field that was begun.
    public mutating func value(_ value: Span<UInt8>) {
        bytes.append(UInt8(ascii: hasValue ? "," : ":"))
        bytes.append(UInt8(ascii: " "))
        hasValue = true
        append(value)
    }

    /// Ends the line of a signed field.
    public mutating func endHeader() { bytes.append(Self.lineFeed) }

    // MARK: Lines in two pieces

    /// Continues lines that were written before, up to the target or up to the digest.
    ///
    /// - Parameters:
    ///   - lines: the lines so far.
    ///   - parts: what is signed.
    ///   - hasDigest: whether the digest is among the lines.
    package mutating func resume(behind lines: [UInt8], _ parts: SignedParts, hasDigest: Bool) {
        bytes.removeAll(keepingCapacity: true)
        bytes.append(contentsOf: lines)
        self.parts = parts
        turn = hasDigest ? .challenge : .digest
    }

    /// Forgets the last request and begins after its digest, for a digest that comes later.
    package mutating func beginBehindDigest(_ parts: SignedParts) {
        resume(behind: [], parts, hasDigest: true)
    }

    // MARK: Pieces

    private mutating func line(_ turn: Turn, _ text: Span<UInt8>?) {
        expect(turn)
        if let text, parts.contains(turn.part) { append(text) } else { bytes.append(Self.absent) }
        bytes.append(Self.lineFeed)
        self.turn = turn.next
    }

    private func expect(_ turn: Turn) {
        precondition(self.turn == turn, "RequestLines: a line out of turn")
    }

    private mutating func append(_ text: Span<UInt8>) {
        // The pointer lives for the call only, and the copy is made inside it.
        unsafe text.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
    }
}

extension RequestLines {
    /// A whole request, of whose parts a rule signs some.
    public struct Request: Sendable {
        /// As in the request line.
        public var method: String
        /// As in the request line, in origin-form.
        public var target: String
        /// SHA-256 of the content, 32 bytes.
        public var digest: [UInt8]
        /// The signed fields in the rule's order; `nil` for one that the request lacks.
        public var headers: [(name: String, value: String?)]

        /// A request of these parts.
        public init(
            method: String,
            target: String,
            digest: [UInt8],
            headers: [(name: String, value: String?)] = []
        ) {
            self.method = method
            self.target = target
            self.digest = digest
            self.headers = headers
        }
    }

    /// The client data of a whole request, for clients and tests.
    ///
    /// - Parameters:
    ///   - parts: what is signed; the others are written as "-".
    ///   - request: the request.
    ///   - challenge: the text of the challenge field; `nil` for a request without one.
    /// - Returns: the lines; SHA-256 of them is what an assertion is made for.
    public static func clientData(
        _ parts: SignedParts,
        of request: Request,
        challenge: String?
    ) -> [UInt8] {
        var lines = RequestLines()
        lines.begin(parts, method: ContiguousArray(request.method.utf8).span)
        lines.target(ContiguousArray(request.target.utf8).span)
        lines.digest(ContiguousArray(request.digest).span)
        if let challenge {
            lines.challenge(ContiguousArray(challenge.utf8).span)
        } else {
            lines.challenge(nil)
        }
        for (name, value) in request.headers {
            lines.header(ContiguousArray(name.utf8).span)
            if let value { lines.value(ContiguousArray(value.utf8).span) }
            lines.endHeader()
        }
        return lines.bytes
    }
}

/// The number of a request within its session: 1…2⁵³−1, each used once.
///
/// The field carries its decimal text, and so does the challenge's line of the client data. The
/// limit is that of a number in JSON and JavaScript, so that clients in any language can count to
/// it.
public struct SequenceNumber: Comparable, Hashable, Sendable {
    /// The greatest number, 2⁵³−1.
    public static let max = SequenceNumber(checked: 1 << 53 - 1)
    /// The first number of a session.
    public static let first = SequenceNumber(checked: 1)

    /// The most digits of a number.
    private static let digitsMax = 16

    /// The number, 1…2⁵³−1.
    public let rawValue: UInt64

    /// The number of this value; `nil` for 0 and for values above ``max``.
    public init?(_ rawValue: UInt64) {
        guard rawValue >= 1, rawValue <= Self.max.rawValue else { return nil }
        self.rawValue = rawValue
    }

    /// Reads decimal digits without a sign or a leading zero, so that a number has one spelling;
    /// `nil` for anything else.
    public init?(text: Span<UInt8>) {
        guard (1...Self.digitsMax).contains(text.count), text[0] != UInt8(ascii: "0") else {
            return nil
        }
        var value: UInt64 = 0
        for index in text.indices {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(text[index]) else { return nil }
            // Sixteen digits stay below 2⁶⁴.
            value = value * 10 + UInt64(text[index] - UInt8(ascii: "0"))
        }
        self.init(value)
    }

    private init(checked rawValue: UInt64) { self.rawValue = rawValue }

    /// The number as the field carries it.
    public var text: String { String(rawValue) }

    /// The next number; `nil` after ``max``, where the client has to open a new session.
    public var next: SequenceNumber? { Self(rawValue + 1) }

    /// Whether the left number comes first.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

extension RequestLines {
    /// The client data of a request that is signed with a session: the rule's lines, with the
    /// sequence number in the line of the challenge, whether or not the rule signs a challenge.
    ///
    /// The code of `App-Attest-Signature` is HMAC-SHA-256 with the session's secret over them.
    ///
    /// - Parameters:
    ///   - parts: what the rule signs.
    ///   - request: the request.
    ///   - sequence: the number of the request within its session.
    /// - Returns: the lines.
    public static func clientData(
        _ parts: SignedParts,
        of request: Request,
        sequence: SequenceNumber
    ) -> [UInt8] {
        clientData(parts.inSession, of: request, challenge: sequence.text)
    }
}

extension SignedParts {
    /// The parts that a session signs where a rule asks for these parts: always with the sequence
    /// number.
    public var inSession: SignedParts { union(.challenge) }
}
