internal import DeviceKey
internal import Encodings
internal import Signatures
internal import Tokens

/// An answer to a ``DeciderQuestion``.
protocol DeciderAnswer: Sendable {
    /// - decider: the one that asked.
    init(from bytes: inout ByteReader, at decider: Decider) throws(ByteReader.Fault)
    /// - decider: the one that answers.
    func write(to out: inout ByteWriter, at decider: Decider)
}

extension DeciderAnswer {
    /// `nil` without an answer, and for one that can't be read.
    init?(answered bytes: [UInt8]?, at decider: Decider) {
        guard let bytes else { return nil }
        var reader = ByteReader(bytes)
        guard let answer = try? Self(from: &reader, at: decider), reader.left == 0 else {
            return nil
        }
        self = answer
    }

    func bytes(at decider: Decider) -> [UInt8] {
        var out = ByteWriter()
        write(to: &out, at: decider)
        return out.bytes
    }
}

// Most answers mean the same in both processes.
extension DeciderAnswer where Self: Coded {
    init(from bytes: inout ByteReader, at _: Decider) throws(ByteReader.Fault) {
        try self.init(from: &bytes)
    }

    func write(to out: inout ByteWriter, at _: Decider) { write(to: &out) }
}

extension Bool: DeciderAnswer {}
extension [UInt8]: DeciderAnswer {}
extension TokenClaim: Listed, DeciderAnswer {}
extension SpendOutcome: Listed, DeciderAnswer {}
extension ChallengeIssuer.Spending: Listed, DeciderAnswer {}

extension ConsumeDecision: Listed, DeciderAnswer {
    static let listed: [Self] =
        [admitted, unavailable, unassured] + ConsumeRefusal.allCases.map(refused)
}

extension EnrolOutcome: Coded, DeciderAnswer {
    func write(to out: inout ByteWriter) {
        switch self {
        case .inserted(let keyID):
            out.byte(0)
            out.put(keyID)
        case .existing(let keyID):
            out.byte(1)
            out.put(keyID)
        case .revoked: out.byte(2)
        case .failed: out.byte(3)
        case .challengeSpent: out.byte(4)
        }
    }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        switch try bytes.byte() {
        case 0: self = .inserted(try bytes.next())
        case 1: self = .existing(try bytes.next())
        case 2: self = .revoked
        case 3: self = .failed
        case 4: self = .challengeSpent
        default: throw ByteReader.Fault()
        }
    }
}

extension ChallengeIssuer.Examination: Coded, DeciderAnswer {
    func write(to out: inout ByteWriter) {
        switch self {
        case .valid(let serial):
            out.byte(0)
            out.put(serial)
        case .unknown: out.byte(1)
        case .expired: out.byte(2)
        case .spent: out.byte(3)
        case .foreign: out.byte(4)
        }
    }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        switch try bytes.byte() {
        case 0: self = .valid(try bytes.next())
        case 1: self = .unknown
        case 2: self = .expired
        case 3: self = .spent
        case 4: self = .foreign
        default: throw ByteReader.Fault()
        }
    }
}

extension KeyTable.Finding: DeciderAnswer {
    func write(to out: inout ByteWriter, at decider: Decider) {
        switch self {
        case .unavailable: out.byte(0)
        case .unknown: out.byte(1)
        case .absent: out.byte(2)
        case .known(let key), .outdated(let key):
            let isOutdated = if case .outdated = self { true } else { false }
            out.byte(3)
            out.put(isOutdated)
            key.write(to: &out, appID: decider.keys.appID(of: key.app))
        }
    }

    init(from bytes: inout ByteReader, at decider: Decider) throws(ByteReader.Fault) {
        switch try bytes.byte() {
        case 0: self = .unavailable
        case 1: self = .unknown
        case 2: self = .absent
        case 3:
            let isOutdated = try bytes.flag()
            let key = try StoredKey(from: &bytes, apps: decider.keys.apps)
            self = isOutdated ? .outdated(key) : .known(key)
        default: throw ByteReader.Fault()
        }
    }
}

extension StoredKey {
    private static let daySeconds: Int64 = 86_400

    /// - appID: the name of ``app``, whose number differs in another process.
    fileprivate func write(to out: inout ByteWriter, appID: String) {
        for number in [platform.number, environment.number] { out.byte(number) }
        out.text(appID)
        out.put(publicKey.x963, counters.highest, isRevoked, context, risk.metric.map(Int64.init))
        for word in [counters.seen, UInt64(risk.day)] { out.word(word) }
    }

    fileprivate init(from bytes: inout ByteReader, apps: AppNumbers) throws(ByteReader.Fault) {
        platform = try ByteReader.known(DevicePlatform(number: try bytes.byte()))
        environment = try ByteReader.known(KeyEnvironment(number: try bytes.byte()))
        app = apps.number(of: try bytes.text())
        publicKey = try ByteReader.known(P256PublicKey(x963: try bytes.block(max: 65)))
        let highest: SignCounter = try bytes.next()
        isRevoked = try bytes.next()
        context = try bytes.next()
        let metric: Int64? = try bytes.next()
        counters = CounterState(highest: highest, seen: try bytes.word())
        let day = try ByteReader.known(UInt16(exactly: try bytes.word()))
        risk = KeyRisk(metric: metric.map(UInt32.init(clamping:)), at: Int64(day) * Self.daySeconds)
        // Not sent: the process that has the store decides, and asks for the challenge.
        anchor = .held
        row = nil
    }
}

extension SessionTable.Opened: Coded, DeciderAnswer {
    func write(to out: inout ByteWriter) { out.put(id, secret) }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        self.init(id: try bytes.next(), secret: try bytes.next())
    }
}

extension SessionTable.Finding: DeciderAnswer {
    func write(to out: inout ByteWriter, at _: Decider) {
        switch self {
        case .unknown(.foreign): out.byte(0)
        case .unknown(.evicted): out.byte(1)
        case .expired: out.byte(2)
        case .live(let session):
            out.byte(3)
            out.put(session.idBytes, session.keyID, session.evidence)
        }
    }

    init(from bytes: inout ByteReader, at decider: Decider) throws(ByteReader.Fault) {
        switch try bytes.byte() {
        case 0: self = .unknown(.foreign)
        case 1: self = .unknown(.evicted)
        case 2: self = .expired
        case 3:
            let id: [UInt8] = try bytes.next()
            let session = decider.sessions.session(
                heldElsewhere: id,
                of: try bytes.next(),
                by: try bytes.next()
            )
            guard let session else { throw ByteReader.Fault() }
            self = .live(session)
        default: throw ByteReader.Fault()
        }
    }
}
