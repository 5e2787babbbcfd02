internal import Cryptography
internal import Encodings

// The one-time challenges of the gateway.
//
// A challenge is 42 bytes, sent as 56 characters of base64url:
//
//     offset  bytes  meaning
//     0       1       version, 1
//     1       1       purpose: 1 enrolment, 2 assertion
//     2       8       epoch, drawn at every start
//     10      8       serial number, of its own row for each purpose
//     18      8       expiry, seconds since 1970
//     26      16      HMAC-SHA-256 over the bytes before, its first half
//
// Numbers are big-endian. Issuing keeps nothing: a client that asks for challenges takes no memory
// and nothing that another client needs. Spending follows a verified signature. A spent challenge
// is remembered (`SpentChallenges`) until it would have expired.
//
// A serial number has a period in its upper 24 bits and a count in its lower 40. A period lasts an
// eighth of a lifetime, at least a minute. When all challenges of a period have expired, its spent
// numbers are forgotten together.
//
// The promises and what keeps them:
//
// * A challenge is spent once. The lock of its shard decides, also when event loops race.
// * A spent challenge is never fresh again while it could be admitted, whatever the clock does. A
//   forgotten period is closed: its numbers are refused for ever.
// * After a start no older assertion challenge is good: epoch and secret are new.
// * Where gateways share a store that decides what is spent, they share the secrets too
//   (`SharedSecret`, `SharedKeys`). All of them accept a challenge of any of them, and of any
//   start, once. Each gateway has its own epoch, so no two challenges are the same. The secrets
//   change every day. A new secret is used one minute after it was drawn, when all gateways have
//   read it. The memory of this process then only refuses earlier.
// * An enrolment challenge outlasts the process where the store keeps its secret: a key that Apple
//   has attested can't be attested again. Its epoch names the start that issued its serial number,
//   so that equal numbers of two starts are two challenges. A start forgets what was spent before
//   it: a challenge may then enrol one more key in each start, while it is good. That takes Apple's
//   attestation of that key over this challenge, and the same key is stored once.
// * Asking for challenges exhausts nothing. The bound is on spent challenges. When it is reached,
//   no more can be spent (`noRoom`) before one expires, and nothing is forgotten early.
//
// Memory: spent challenges are kept in blocks of 448 serial numbers, 64 bytes each. The capacity is
// in blocks, so that it holds for challenges that are far apart; a block takes at most 170 bytes of
// a table. The default of 1,048,576 blocks is 178 MB for each purpose at the very most, which takes
// as many signatures and 470 million challenges issued within one lifetime. 1,000 verified requests
// a second for five minutes take some 150 KB. Which enrolment challenges were tried, and which of
// another start were spent, is kept in the same way (`RememberedChallenges`): 17 MB each at the
// very most, for 29 million that are issued within a lifetime. 100 a second for an hour take some
// 200 KB. Where that is not enough, a challenge of another start can't be spent (`noRoom`), and no
// try counts as a first one.

/// What a challenge may be used for. The raw value is its byte in the challenge.
package enum ChallengePurpose: UInt8, CaseIterable, Hashable, Sendable {
    /// Attesting a new key.
    case enrolment = 1
    /// Signing a request.
    case assertion = 2

    /// The word on the wire and in metrics.
    package var name: String {
        switch self {
        case .enrolment: "enrolment"
        case .assertion: "assertion"
        }
    }

    /// The purpose of that name; `nil` for any other text.
    package init?(name: String) {
        guard let purpose = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = purpose
    }
}

/// The place of an issued challenge among those of its purpose: what is spent.
///
/// Comes out of ``ChallengeIssuer/examine(_:purpose:now:)`` only.
package struct ChallengeSerial: Hashable, Sendable {
    package let purpose: ChallengePurpose
    /// Which start of a gateway issued it: serial numbers of two starts may be the same.
    package let epoch: UInt64
    package let number: UInt64
    /// Seconds since 1970.
    package let expiry: Int64
}

/// The parts of a challenge, read from its text. The code is not checked.
package struct UnverifiedChallenge: Sendable {
    /// Bytes of a challenge, and characters of its text.
    package static let byteCount = 42
    package static let textCount = 56
    /// The bytes that the code covers.
    private static let signedCount = 26
    private static let version: UInt8 = 1

    package let purpose: ChallengePurpose
    /// The start of a gateway that issued it.
    package let epoch: UInt64
    package let serial: UInt64
    /// Seconds since 1970; the challenge is good before that second.
    package let expiry: Int64
    let bytes: [UInt8]

    /// Reads the text of a challenge: 56 characters of base64url.
    ///
    /// `nil` for another length, another alphabet, version or purpose, and for an expiry before
    /// 1970.
    package init?(text: Span<UInt8>) {
        // The gateway writes one spelling, so it accepts one.
        guard text.count == Self.textCount, let bytes = Base64.decodeURL(text),
            bytes.count == Self.byteCount, bytes[0] == Self.version,
            let purpose = ChallengePurpose(rawValue: bytes[1]),
            let expiry = Int64(exactly: bytes.span.word(at: 18))
        else { return nil }
        self.purpose = purpose
        epoch = bytes.span.word(at: 2)
        serial = bytes.span.word(at: 10)
        self.expiry = expiry
        self.bytes = bytes
    }
}

extension UnverifiedChallenge {
    /// A challenge's text with its code.
    static func text(
        of purpose: ChallengePurpose,
        epoch: UInt64,
        serial: UInt64,
        expiry: Int64,
        key: HMACSHA256.Key
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(byteCount)
        bytes.append(version)
        bytes.append(purpose.rawValue)
        bytes.append(word: epoch)
        bytes.append(word: serial)
        bytes.append(word: UInt64(clamping: expiry))
        let code = key.code(bytes.span).bytes
        for index in 0..<(byteCount - signedCount) { bytes.append(code[index]) }
        return Base64.encodeURL(bytes.span)
    }

    /// Whether the code is that of the bytes before it. The time does not depend on where they
    /// differ.
    func isAuthentic(under key: HMACSHA256.Key) -> Bool {
        let code = key.code(bytes.span.extracting(0..<Self.signedCount)).bytes
        var difference: UInt8 = 0
        for index in 0..<(Self.byteCount - Self.signedCount) {
            difference |= code[index] ^ bytes[Self.signedCount + index]
        }
        return difference == 0
    }
}
