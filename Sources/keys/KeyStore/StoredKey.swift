package import DeviceKey
package import Encodings
package import Signatures
internal import Tokens

/// The facts of an enrolled key for the verifier. A value of some 100 bytes.
package struct StoredKey: Sendable {
    /// The platform that attested it. It decides how an assertion is read.
    package let platform: DevicePlatform
    package let publicKey: P256PublicKey
    package let app: AppNumber
    package let environment: KeyEnvironment
    package let counters: CounterState
    package let isRevoked: Bool
    /// The app's context from the enrolment; `nil` for none.
    package let context: [UInt8]?
    /// The risk of the device: see ``KeyRecord/risk``.
    package let risk: KeyRisk
    /// Whether the counters are known to be the last ones.
    package let anchor: CounterAnchor
    /// The journal's number, as ``KeyRow/row``; `nil` where another process was asked.
    package let row: Int64?

    /// The highest counter admitted so far.
    package var counter: SignCounter { counters.highest }

    /// The day on which an Android phone's key was enrolled, in days since 1970; `nil` for other
    /// keys, and where the time is not known.
    package var attestedDay: Int64? { platform == .android && risk.day > 0 ? Int64(risk.day) : nil }
}

// Values of the key store as bytes, for a process of this gateway: queries and answers after a
// hand-over.

extension ConsumeDecision {
    func write(to out: inout ByteWriter) {
        switch self {
        case .admitted: out.byte(0)
        case .unavailable: out.byte(1)
        case .unassured: out.byte(2)
        case .refused(let refusal):
            out.byte(3)
            out.byte(UInt8(ConsumeRefusal.allCases.firstIndex(of: refusal) ?? 0))
        }
    }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        switch try bytes.byte() {
        case 0: self = .admitted
        case 1: self = .unavailable
        case 2: self = .unassured
        case 3:
            let index = Int(try bytes.byte())
            guard ConsumeRefusal.allCases.indices.contains(index) else { throw ByteReader.Fault() }
            self = .refused(ConsumeRefusal.allCases[index])
        default: throw ByteReader.Fault()
        }
    }
}

extension CounterState {
    func write(to out: inout ByteWriter) {
        out.word(UInt64(highest.rawValue))
        out.word(seen)
    }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        let highest = try SignCounter(from: &bytes)
        self.init(highest: highest, seen: try bytes.word())
    }
}

extension SignCounter {
    func write(to out: inout ByteWriter) { out.word(UInt64(rawValue)) }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        guard let value = UInt32(exactly: try bytes.word()) else { throw ByteReader.Fault() }
        self.init(rawValue: value)
    }
}

extension StoreCounterRule {
    func write(to out: inout ByteWriter) {
        switch self {
        case .strict: out.byte(0)
        case .window(let width): out.byte(UInt8(min(max(width, 1), 64)))
        }
    }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        let width = try bytes.byte()
        self = width == 0 ? .strict : .window(Int(width))
    }
}

extension KeyID {
    package func write(to out: inout ByteWriter) { out.block(bytes) }

    package init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        guard let keyID = KeyID(bytes: try bytes.block(max: 32)) else { throw ByteReader.Fault() }
        self = keyID
    }
}

extension P256PublicKey {
    func write(to out: inout ByteWriter) { out.block(x963) }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        guard let key = P256PublicKey(x963: try bytes.block(max: 65)) else {
            throw ByteReader.Fault()
        }
        self = key
    }
}

extension DevicePlatform {
    func write(to out: inout ByteWriter) { out.byte(number) }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        guard let platform = DevicePlatform(number: try bytes.byte()) else {
            throw ByteReader.Fault()
        }
        self = platform
    }
}

extension KeyEnvironment {
    func write(to out: inout ByteWriter) { out.byte(number) }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        guard let environment = KeyEnvironment(number: try bytes.byte()) else {
            throw ByteReader.Fault()
        }
        self = environment
    }
}

extension StoredKey {
    private static let daySeconds: Int64 = 86_400

    /// - appID: the name of ``app``, whose number differs in another process.
    func write(to out: inout ByteWriter, appID: String) {
        platform.write(to: &out)
        publicKey.write(to: &out)
        out.text(appID)
        environment.write(to: &out)
        counters.write(to: &out)
        out.flag(isRevoked)
        out.optional(context) { $0.block($1) }
        out.optional(risk.metric) { $0.word(UInt64($1)) }
        out.word(UInt64(risk.day))
    }

    init(from bytes: inout ByteReader, apps: AppNumbers) throws(ByteReader.Fault) {
        platform = try DevicePlatform(from: &bytes)
        publicKey = try P256PublicKey(from: &bytes)
        app = apps.number(of: try bytes.text())
        environment = try KeyEnvironment(from: &bytes)
        counters = try CounterState(from: &bytes)
        isRevoked = try bytes.flag()
        context = try bytes.optional { (bytes) throws(ByteReader.Fault) in try bytes.block() }
        let metric = try bytes.optional { (bytes) throws(ByteReader.Fault) in try bytes.word() }
        guard let day = UInt16(exactly: try bytes.word()) else { throw ByteReader.Fault() }
        // Not sent: the process that has the store decides, and asks for the challenge.
        anchor = .held
        row = nil
        risk = KeyRisk(metric: metric.map(UInt32.init(clamping:)), at: Int64(day) * Self.daySeconds)
    }
}

extension KeyRecord {
    /// A key that was just enrolled: its status and source are not sent.
    func write(to out: inout ByteWriter) {
        keyID.write(to: &out)
        platform.write(to: &out)
        out.text(appID)
        environment.write(to: &out)
        publicKey.write(to: &out)
        counters.write(to: &out)
        out.optional(receipt) { $0.block($1) }
        receiptState.write(to: &out)
        out.optional(chain) { $1.write(to: &$0) }
        out.optional(context) { $0.block($1) }
        out.optional(enrolledAt) { $0.number($1) }
    }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        let keyID = try KeyID(from: &bytes)
        let platform = try DevicePlatform(from: &bytes)
        self.init(
            keyID: keyID,
            appID: try bytes.text(),
            environment: try KeyEnvironment(from: &bytes),
            publicKey: try P256PublicKey(from: &bytes),
            enrolledAt: nil
        )
        self.platform = platform
        counters = try CounterState(from: &bytes)
        receipt = try bytes.optional { (bytes) throws(ByteReader.Fault) in try bytes.block() }
        receiptState = try ReceiptState(from: &bytes)
        chain = try bytes.optional { (bytes) throws(ByteReader.Fault) in
            try ChainRecord(from: &bytes)
        }
        context = try bytes.optional { (bytes) throws(ByteReader.Fault) in
            try bytes.block(max: KeyRecord.contextBytesMax)
        }
        enrolledAt = try bytes.optionalNumber()
    }
}

extension ChainRecord {
    /// What the list says of it is not sent: a key that was just enrolled is not revoked.
    func write(to out: inout ByteWriter) {
        out.text(serialText)
        out.optional(certificatesIssued) { $0.word(UInt64($1)) }
    }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        let text = try bytes.text()
        let issued = try bytes.optional { (bytes) throws(ByteReader.Fault) in try bytes.word() }
        self.init(
            serialText: text,
            certificatesIssued: issued.map(UInt32.init(clamping:)),
            listed: nil
        )
    }
}

extension ReceiptState {
    func write(to out: inout ByteWriter) {
        let numbers = [
            createdAt, notBefore, expiresAt, riskMetric.map(Int64.init), metricAt, triedAt, dueAt,
        ]
        for number in numbers { out.optional(number) { $0.number($1) } }
        out.text(outcome?.rawValue ?? "")
        out.flag(isAsked)
    }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        self.init()
        createdAt = try bytes.optionalNumber()
        notBefore = try bytes.optionalNumber()
        expiresAt = try bytes.optionalNumber()
        riskMetric = try bytes.optionalNumber().map(UInt32.init(clamping:))
        metricAt = try bytes.optionalNumber()
        triedAt = try bytes.optionalNumber()
        dueAt = try bytes.optionalNumber()
        outcome = Outcome(rawValue: try bytes.text(max: 64))
        isAsked = try bytes.flag()
    }
}

extension EnrolOutcome {
    func write(to out: inout ByteWriter) {
        switch self {
        case .inserted: out.byte(0)
        case .existing: out.byte(1)
        case .revoked: out.byte(2)
        case .failed: out.byte(3)
        case .challengeSpent: out.byte(4)
        }
    }

    /// - keyID: the key of the enrolment.
    init(from bytes: [UInt8], _ keyID: KeyID) {
        switch bytes.first {
        case 0: self = .inserted(keyID)
        case 1: self = .existing(keyID)
        case 2: self = .revoked
        case 4: self = .challengeSpent
        default: self = .failed
        }
    }
}

extension ByteReader {
    fileprivate mutating func optionalNumber() throws(Fault) -> Int64? {
        try optional { (bytes) throws(Fault) in try bytes.number() }
    }
}
