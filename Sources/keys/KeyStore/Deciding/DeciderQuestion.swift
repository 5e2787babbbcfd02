internal import DeviceKey
internal import Encodings
internal import RequestBinding
internal import Signatures
internal import Tokens

/// All that a process asks its successor. Each case is a function of ``Decider``.
enum DeciderQuestion: Sendable {
    case issue(ChallengePurpose, now: Int64)
    case examine([UInt8], ChallengePurpose, now: Int64)
    case spend(ChallengeSerial)
    case takeBack(ChallengeSerial)
    case firstTry(ChallengeSerial)
    case find(KeyID)
    case lookUp(KeyID)
    case isEnrolling(KeyID)
    case enrol(KeyRecord, spending: ChallengeSerial?)
    case peek(CounterUse)
    case consume(CounterUse, now: Int64, isAwaited: Bool, usesMemory: Bool)
    case openSession(KeyID, VerifiedEvidence, now: Int64)
    case findSession([UInt8], now: Int64)
    case admits([UInt8], SequenceNumber)
    case use([UInt8], SequenceNumber)
    case spendToken(SpentToken)
    case claim(SHA256Digest, now: Int64)
    case release(SHA256Digest)

    /// The first byte of a question is the place here.
    private enum Kind: CaseIterable, Listed {
        case issue, examine, spend, takeBack, firstTry
        case find, lookUp, isEnrolling, enrol, peek, consume
        case openSession, findSession, admits, use
        case spendToken, claim, release
    }

    var bytes: [UInt8] {
        var out = ByteWriter()
        switch self {
        case .issue(let purpose, let now): out.put(Kind.issue, purpose, now)
        case .examine(let text, let purpose, let now): out.put(Kind.examine, text, purpose, now)
        case .spend(let serial): out.put(Kind.spend, serial)
        case .takeBack(let serial): out.put(Kind.takeBack, serial)
        case .firstTry(let serial): out.put(Kind.firstTry, serial)
        case .find(let keyID): out.put(Kind.find, keyID)
        case .lookUp(let keyID): out.put(Kind.lookUp, keyID)
        case .isEnrolling(let keyID): out.put(Kind.isEnrolling, keyID)
        case .enrol(let record, let challenge): out.put(Kind.enrol, record, challenge)
        case .peek(let use): out.put(Kind.peek, use)
        case .consume(let use, let now, let isAwaited, let usesMemory):
            out.put(Kind.consume, use, now, isAwaited, usesMemory)
        case .openSession(let keyID, let evidence, let now):
            out.put(Kind.openSession, keyID, evidence, now)
        case .findSession(let text, let now): out.put(Kind.findSession, text, now)
        case .admits(let id, let number): out.put(Kind.admits, id, number)
        case .use(let id, let number): out.put(Kind.use, id, number)
        case .spendToken(let token): out.put(Kind.spendToken, token)
        case .claim(let token, let now): out.put(Kind.claim, token, now)
        case .release(let token): out.put(Kind.release, token)
        }
        return out.bytes
    }

    init(_ question: [UInt8]) throws(ByteReader.Fault) {
        var bytes = ByteReader(question)
        let kind: Kind = try bytes.next()
        switch kind {
        case .issue: self = .issue(try bytes.next(), now: try bytes.next())
        case .examine: self = .examine(try bytes.next(), try bytes.next(), now: try bytes.next())
        case .spend: self = .spend(try bytes.next())
        case .takeBack: self = .takeBack(try bytes.next())
        case .firstTry: self = .firstTry(try bytes.next())
        case .find: self = .find(try bytes.next())
        case .lookUp: self = .lookUp(try bytes.next())
        case .isEnrolling: self = .isEnrolling(try bytes.next())
        case .enrol: self = .enrol(try bytes.next(), spending: try bytes.next())
        case .peek: self = .peek(try bytes.next())
        case .consume:
            self = .consume(
                try bytes.next(),
                now: try bytes.next(),
                isAwaited: try bytes.next(),
                usesMemory: try bytes.next()
            )
        case .openSession:
            self = .openSession(try bytes.next(), try bytes.next(), now: try bytes.next())
        case .findSession: self = .findSession(try bytes.next(), now: try bytes.next())
        case .admits: self = .admits(try bytes.next(), try bytes.next())
        case .use: self = .use(try bytes.next(), try bytes.next())
        case .spendToken: self = .spendToken(try bytes.next())
        case .claim: self = .claim(try bytes.next(), now: try bytes.next())
        case .release: self = .release(try bytes.next())
        }
        try bytes.end()
    }
}
