internal import Cryptography
internal import DeviceKey
internal import Encodings

/// A key's line while its members are read.
struct KeyLineDraft {
    typealias Problem = KeyLine.Problem

    private enum Member: String, CaseIterable {
        case keyID = "key_id"
        case platform
        case appID = "app_id"
        case environment
        case publicKey = "public_key"
        case counter
        case window
        case status
        case revokedAt = "revoked_at"
        case enrolledAt = "enrolled_at"
        case lastUsedAt = "last_used_at"
        case source
        case receipt
        case receiptCreatedAt = "receipt_created_at"
        case receiptNotBefore = "receipt_not_before"
        case receiptExpiresAt = "receipt_expires_at"
        case riskMetric = "risk_metric"
        case riskMetricAt = "risk_metric_at"
        case renewalTriedAt = "renewal_tried_at"
        case renewalOutcome = "renewal_outcome"
        case renewalDueAt = "renewal_due_at"
        case serials
        case certificatesIssued = "certificates_issued"
        case listed
        case context
        case erased
        case erasedUnder = "erased_under"
        case deletedAt = "deleted_at"

        static let ofErasedKey: [Member] = [.erased, .erasedUnder, .deletedAt]
    }

    private enum Status: String, CaseIterable { case active, revoked }

    private static let names = Member.allCases.map { Array($0.rawValue.utf8) }

    private var keyID: KeyID?
    private var platform: DevicePlatform?
    private var appID: String?
    private var environment: KeyEnvironment?
    private var publicKey: P256PublicKey?
    private var counter: SignCounter?
    private var window: UInt64?
    private var isRevoked: Bool?
    private var revokedAt: Int64?
    private var enrolledAt: Int64?
    private var lastUsedAt: Int64?
    private var source: KeyRecord.Source?
    private var receipt: [UInt8]?
    private var receiptState = ReceiptState()
    private var serials: [String]?
    private var certificatesIssued: UInt32?
    private var listed: String?
    private var context: [UInt8]?
    private var mark: KeyID?
    private var secret: ErasureSecret?
    private var deletedAt: Int64?
    /// A bit for each member that was read.
    private var taken: UInt32 = 0

    mutating func take(_ name: [UInt8], _ value: JSONReader.Scalar) throws(Problem) {
        guard let place = Self.names.firstIndex(of: name) else {
            throw Problem("\(Self.quoted(name)) is no member of a key")
        }
        guard taken >> UInt32(place) & 1 == 0 else {
            throw Problem("\(Self.quoted(name)) is given twice")
        }
        taken |= 1 << UInt32(place)
        switch Member.allCases[place] {
        case .keyID:
            guard case .string(let text) = value, let keyID = KeyID(base64: text.span) else {
                throw Problem("key_id: use base64 of 32 bytes")
            }
            self.keyID = keyID
        case .platform: platform = try Self.word(value, "platform", as: DevicePlatform.self)
        case .appID: appID = try Self.appID(value)
        case .environment:
            environment = try Self.word(value, "environment", as: KeyEnvironment.self)
        case .publicKey: publicKey = try Self.publicKey(value)
        case .counter:
            guard case .number(let number) = value, let number = UInt32(exactly: number) else {
                throw Problem("counter: use a number, 0…4294967295")
            }
            counter = SignCounter(rawValue: number)
        case .window:
            guard case .string(let text) = value, text.count == 16,
                let number = UInt64(String(decoding: text, as: UTF8.self), radix: 16)
            else { throw Problem("window: use 16 hexadecimal digits") }
            window = number
        case .status: isRevoked = try Self.word(value, "status", as: Status.self) == .revoked
        case .revokedAt: revokedAt = try Self.second(value, "revoked_at")
        case .enrolledAt: enrolledAt = try Self.second(value, "enrolled_at")
        case .lastUsedAt: lastUsedAt = try Self.second(value, "last_used_at")
        case .source: source = try Self.word(value, "source", as: KeyRecord.Source.self)
        case .receipt: receipt = try Self.bytes(value, "receipt")
        case .receiptCreatedAt, .receiptNotBefore, .receiptExpiresAt, .riskMetric, .riskMetricAt,
            .renewalTriedAt, .renewalOutcome, .renewalDueAt:
            try take(Member.allCases[place], ofReceipt: value)
        case .serials: serials = try Self.serials(value)
        case .certificatesIssued: certificatesIssued = try Self.metric(value, "certificates_issued")
        case .listed: listed = try Self.listed(value)
        case .context:
            context = try Self.bytes(value, "context")
            guard context?.count ?? 1 <= KeyRecord.contextBytesMax else {
                throw Problem("context: use at most \(KeyRecord.contextBytesMax) bytes")
            }
        case .erased, .erasedUnder, .deletedAt:
            try take(Member.allCases[place], ofErasedKey: value)
        }
    }

    private mutating func take(
        _ member: Member,
        ofErasedKey value: JSONReader.Scalar
    ) throws(Problem) {
        switch member {
        case .erased: mark = KeyID(bytes: try Self.bytes32(value, "erased"))
        case .erasedUnder: secret = ErasureSecret(bytes: try Self.bytes32(value, "erased_under"))
        case .deletedAt: deletedAt = try Self.second(value, "deleted_at")
        default: preconditionFailure("KeyLineDraft: \(member.rawValue) is of no erased key")
        }
    }

    private mutating func take(
        _ member: Member,
        ofReceipt value: JSONReader.Scalar
    ) throws(Problem) {
        let name = member.rawValue
        switch member {
        case .receiptCreatedAt: receiptState.createdAt = try Self.second(value, name)
        case .receiptNotBefore: receiptState.notBefore = try Self.second(value, name)
        case .receiptExpiresAt: receiptState.expiresAt = try Self.second(value, name)
        case .riskMetric: receiptState.riskMetric = try Self.metric(value, name)
        case .riskMetricAt: receiptState.metricAt = try Self.second(value, name)
        case .renewalTriedAt: receiptState.triedAt = try Self.second(value, name)
        case .renewalDueAt: receiptState.dueAt = try Self.second(value, name)
        case .renewalOutcome:
            guard value != .null else { return }
            receiptState.outcome = try Self.word(value, name, as: ReceiptState.Outcome.self)
        default: preconditionFailure("KeyLineDraft: \(name) is no member of a receipt")
        }
    }

    /// The key, when no member is missing.
    func record() throws(Problem) -> KeyRecord {
        let isOfErasedKey = Member.ofErasedKey.contains { member in
            Member.allCases.firstIndex(of: member).map { taken >> UInt32($0) & 1 == 1 } ?? false
        }
        if isOfErasedKey { return try erased() }
        guard let keyID else { throw Problem("key_id is missing") }
        guard let appID else { throw Problem("app_id is missing") }
        guard let environment else { throw Problem("environment is missing") }
        guard let publicKey else { throw Problem("public_key is missing") }
        guard let counter else { throw Problem("counter is missing") }
        guard isRevoked == true || revokedAt == nil else {
            throw Problem("revoked_at is given, and status is not revoked")
        }
        guard platform == .android || serials == nil else {
            throw Problem("serials: given for a key of another platform than android")
        }
        guard serials != nil || certificatesIssued == nil && listed == nil else {
            throw Problem("certificates_issued and listed: given without serials")
        }
        guard isRevoked == true || listed == nil else {
            throw Problem("listed is given, and status is not revoked")
        }
        var receiptState = receiptState
        // Apple has no data of it any more, so asking again is useless.
        if receiptState.outcome == .gone { receiptState.dueAt = nil }
        return KeyRecord(
            keyID: keyID,
            platform: platform ?? .apple,
            appID: appID,
            environment: environment,
            publicKey: publicKey,
            // The used counters below are unknown, so all of them count as used.
            counters: CounterState(highest: counter, seen: window ?? .max),
            receipt: receipt,
            receiptState: receipt == nil ? ReceiptState() : receiptState,
            chain: serials.map { serials in
                ChainRecord(
                    serials: serials,
                    certificatesIssued: certificatesIssued,
                    listed: listed
                )
            },
            context: context,
            enrolledAt: enrolledAt,
            lastUsedAt: lastUsedAt,
            status: isRevoked == true ? .revoked(at: revokedAt ?? 0) : .active,
            source: source ?? .imported
        )
    }

    /// What is left of an erased key.
    private func erased() throws(Problem) -> KeyRecord {
        guard let mark else { throw Problem("erased is missing") }
        guard let secret else { throw Problem("erased_under is missing") }
        guard let deletedAt else { throw Problem("deleted_at is missing") }
        guard taken.nonzeroBitCount == Member.ofErasedKey.count else {
            throw Problem("erased is given with members of a key that is not erased")
        }
        return KeyRecord.erased(mark, under: secret, at: deletedAt)
    }

    // MARK: Values

    private static func quoted(_ bytes: [UInt8]) -> String {
        "\"" + String(decoding: bytes.prefix(40), as: UTF8.self) + "\""
    }

    private static func appID(_ value: JSONReader.Scalar) throws(Problem) -> String {
        guard case .string(let text) = value, (1...255).contains(text.count),
            text.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw Problem("app_id: use an App ID, 1…255 characters of ASCII without blanks") }
        return String(decoding: text, as: UTF8.self)
    }

    private static func serials(_ value: JSONReader.Scalar) throws(Problem) -> [String]? {
        if value == .null { return nil }
        guard case .string(let text) = value else { throw unreadableSerials }
        let serials = text.split(separator: 0x20).map { $0 }
        guard (1...ChainRecord.serialsMax).contains(serials.count),
            serials.allSatisfy(isSerial)
        else { throw unreadableSerials }
        return serials.map { String(decoding: $0, as: UTF8.self) }
    }

    private static let unreadableSerials = Problem(
        """
        serials: use 1…\(ChainRecord.serialsMax) numbers in hexadecimal with lower case and \
        without leading zeros, separated by blanks, or null
        """
    )

    /// The one spelling of a number, since serials are compared as texts.
    private static func isSerial(_ digits: some Collection<UInt8>) -> Bool {
        (1...ChainRecord.digitsMax).contains(digits.count)
            && (digits.count == 1 || digits.first != 0x30)
            && digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    private static func listed(_ value: JSONReader.Scalar) throws(Problem) -> String? {
        if value == .null { return nil }
        guard case .string(let text) = value,
            (1...ChainRecord.listedBytesMax).contains(text.count),
            text.allSatisfy({ $0 >= 0x20 && $0 < 0x7F })
        else {
            throw Problem(
                "listed: use 1…\(ChainRecord.listedBytesMax) characters of ASCII, or null"
            )
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func publicKey(_ value: JSONReader.Scalar) throws(Problem) -> P256PublicKey {
        guard case .string(let text) = value, let bytes = Base64.decode(text.span) else {
            throw Problem("public_key: use base64 of an X9.62 point")
        }
        guard bytes.count == 65, bytes[0] == 4 else {
            throw Problem("public_key: \(bytes.count) bytes; use 65, the first of them 04")
        }
        guard let key = P256PublicKey(x963: bytes.span) else {
            throw Problem("public_key: the point is not on the curve P-256")
        }
        return key
    }

    private static func bytes(
        _ value: JSONReader.Scalar,
        _ name: String
    ) throws(Problem) -> [UInt8]? {
        switch value {
        case .null: return nil
        case .string(let text):
            if let bytes = Base64.decode(text.span), !bytes.isEmpty { return bytes }
        case .number, .boolean: break
        }
        throw Problem("\(name): use base64 or null")
    }

    private static func bytes32(
        _ value: JSONReader.Scalar,
        _ name: String
    ) throws(Problem) -> [UInt8] {
        guard case .string(let text) = value, let bytes = Base64.decode(text.span),
            bytes.count == 32
        else { throw Problem("\(name): use base64 of 32 bytes") }
        return bytes
    }

    private static func metric(
        _ value: JSONReader.Scalar,
        _ name: String
    ) throws(Problem) -> UInt32? {
        switch value {
        case .null: return nil
        case .number(let number):
            if let metric = UInt32(exactly: number) { return metric }
        case .string, .boolean: break
        }
        throw Problem("\(name): use a number, 0…4294967295, or null")
    }

    private static func word<Word: RawRepresentable<String> & CaseIterable>(
        _ value: JSONReader.Scalar,
        _ name: String,
        as kind: Word.Type
    ) throws(Problem) -> Word {
        guard case .string(let text) = value,
            let word = Word.allCases.first(where: { $0.rawValue.utf8.elementsEqual(text) })
        else {
            let words = Word.allCases.map(\.rawValue).joined(separator: " or ")
            throw Problem("\(name): use \(words)")
        }
        return word
    }

    private static func second(
        _ value: JSONReader.Scalar,
        _ name: String
    ) throws(Problem) -> Int64? {
        switch value {
        case .null: return nil
        case .string(let text):
            if let time = UnixTime(iso8601: text.span), time.seconds >= 0 { return time.seconds }
        case .number, .boolean: break
        }
        throw Problem("\(name): use a time such as 2026-04-20T10:00:00Z, or null")
    }
}
