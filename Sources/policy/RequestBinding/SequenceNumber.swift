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
    ///   - method: as in the request line.
    ///   - target: as in the request line, in origin-form.
    ///   - digest: SHA-256 of the content, 32 bytes.
    ///   - sequence: the number of the request within its session.
    ///   - headers: the signed fields in the rule's order; `nil` for one that the request lacks.
    /// - Returns: the lines.
    public static func clientData(
        _ parts: SignedParts,
        method: String,
        target: String,
        digest: [UInt8],
        sequence: SequenceNumber,
        headers: [(name: String, value: String?)] = []
    ) -> [UInt8] {
        clientData(
            parts.inSession,
            method: method,
            target: target,
            digest: digest,
            challenge: sequence.text,
            headers: headers
        )
    }
}

extension SignedParts {
    /// The parts that a session signs where a rule asks for these parts: always with the sequence
    /// number.
    public var inSession: SignedParts { union(.challenge) }
}
