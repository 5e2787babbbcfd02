package import Encodings
package import OutboundCalls
package import Rules
package import Signatures
package import Tokens

/// What Google says in a token of Play Integrity (Google, "Integrity verdicts").
///
/// Types are read strictly. Unknown members are skipped; one that occurs twice makes the whole
/// unreadable.
package struct IntegrityPayload: Hashable, Sendable {
    /// `requestPackageName`: the app that has asked, by its own word.
    package private(set) var package = ""
    /// `requestHash` of a standard request, `nonce` of a classic one: what the app has bound the
    /// token to; `nil` where it has neither.
    package private(set) var hash: String?
    /// `timestampMillis`, milliseconds since 1970, by Google's clock.
    package private(set) var milliseconds: Int64 = 0
    /// `packageName`: the app that Google has seen; `nil` where it does not tell.
    package private(set) var seenPackage: String?
    /// `certificateSha256Digest`; empty where Google does not tell.
    package private(set) var signers: [String] = []
    package private(set) var verdict = IntegrityVerdict()

    /// The most elements of a list, and members of an object.
    package static let elementsMax = 64
    /// The longest text. A `requestHash` or `nonce` has 500 bytes at most, and its app chooses it.
    package static let textBytesMax = 2_048

    /// The objects that are read, with the place of each.
    private enum Section: String {
        case root = ""
        case tokenPayloadExternal, requestDetails, appIntegrity, deviceIntegrity
        case recentDeviceActivity, accountDetails, environmentDetails, testingDetails

        /// The section inside this one with a name; `nil` for none.
        func section(_ name: String) -> Section? {
            guard let inner = Section(rawValue: name) else { return nil }
            return switch (self, inner) {
            case (_, .root), (_, .tokenPayloadExternal): nil
            case (.deviceIntegrity, .recentDeviceActivity): inner
            case (_, .recentDeviceActivity): nil
            case (.tokenPayloadExternal, _): inner
            default: nil
            }
        }
    }

    /// Reads the answer of Google's service.
    package init(answer content: [UInt8]) throws(JSONError) {
        let text = content.span
        var reader = JSONReader()
        var isThere = false
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            guard name == Array(Section.tokenPayloadExternal.rawValue.utf8) else {
                try reader.skipValue(text, depth: 1)
                continue
            }
            guard !isThere else { throw reader.error("a member occurs twice") }
            isThere = true
            try read(.tokenPayloadExternal, reader: &reader, text: text, depth: 1)
        }
        try reader.end(text)
        guard isThere else { throw reader.error("tokenPayloadExternal is missing") }
    }

    /// Reads the payload of a token that was decoded here.
    package init(payload content: [UInt8]) throws(JSONError) {
        var reader = JSONReader()
        try read(.tokenPayloadExternal, reader: &reader, text: content.span, depth: 0)
        try reader.end(content.span)
    }

    private mutating func read(
        _ section: Section,
        reader: inout JSONReader,
        text: Span<UInt8>,
        depth: Int
    ) throws(JSONError) {
        var names: Set<String> = []
        try reader.beginObject(text)
        while let bytes = try reader.nextName(text) {
            let name = String(decoding: bytes, as: UTF8.self)
            guard names.insert(name).inserted, names.count <= Self.elementsMax else {
                throw reader.error("a member occurs twice, or too many")
            }
            if let inner = section.section(name) {
                try read(inner, reader: &reader, text: text, depth: depth + 1)
            } else if try !take(name, of: section, reader: &reader, text: text) {
                try reader.skipValue(text, depth: depth + 1)
            }
        }
    }

    /// Whether the member is one that is read.
    private mutating func take(
        _ name: String,
        of section: Section,
        reader: inout JSONReader,
        text: Span<UInt8>
    ) throws(JSONError) -> Bool {
        switch (section, name) {
        case (.requestDetails, "requestPackageName"): package = try Self.text(&reader, text)
        case (.requestDetails, "requestHash"), (.requestDetails, "nonce"):
            guard hash == nil else { throw reader.error("a hash and a nonce") }
            hash = try Self.text(&reader, text)
        case (.requestDetails, "timestampMillis"): milliseconds = try Self.time(&reader, text)
        case (.appIntegrity, "appRecognitionVerdict"):
            verdict.isRecognized = try Self.text(&reader, text) == "PLAY_RECOGNIZED"
        case (.appIntegrity, "packageName"): seenPackage = try Self.text(&reader, text)
        case (.appIntegrity, "certificateSha256Digest"): signers = try Self.list(&reader, text)
        case (.deviceIntegrity, "deviceRecognitionVerdict"):
            verdict.device = Set(try Self.list(&reader, text).compactMap(Self.device))
        case (.recentDeviceActivity, "deviceActivityLevel"):
            let level = try Self.text(&reader, text)
            verdict.activity = IntegrityRule.activityLevels.first { level == "LEVEL_\($0)" }
        case (.accountDetails, "appLicensingVerdict"):
            verdict.isLicensed = try Self.text(&reader, text) == "LICENSED"
        case (.environmentDetails, "playProtectVerdict"):
            let word = try Self.text(&reader, text).lowercased().replacing("_", with: "-")
            verdict.playProtect = IntegrityVerdict.PlayProtect(rawValue: word)
        case (.testingDetails, "isTestingResponse"):
            guard case .boolean(let flag) = try reader.scalar(text) else {
                throw reader.error("use true or false")
            }
            verdict.isTest = flag
        default: return false
        }
        return true
    }

    private static func device(_ label: String) -> IntegrityVerdict.Device? {
        IntegrityVerdict.Device.allCases.first {
            label == "MEETS_\($0.rawValue.uppercased())_INTEGRITY"
        }
    }

    private static func text(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> String {
        guard case .string(let bytes) = try reader.scalar(text), bytes.count <= textBytesMax else {
            throw reader.error("use a text of at most \(textBytesMax) bytes")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func list(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> [String] {
        var list: [String] = []
        try reader.beginArray(text)
        while try reader.nextElement(text) {
            guard list.count < elementsMax else { throw reader.error("too many elements") }
            list.append(try Self.text(&reader, text))
        }
        return list
    }

    /// Google writes the number as a text (protobuf, "ProtoJSON Format", int64).
    private static func time(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> Int64 {
        switch try reader.scalar(text) {
        case .number(let time) where time > 0: return time
        case .string(let bytes) where (1...15).contains(bytes.count):
            let isNumber = bytes.allSatisfy { (0x30...0x39).contains($0) }
            if isNumber, let time = Int64(String(decoding: bytes, as: UTF8.self)) { return time }
            fallthrough
        default: throw reader.error("use milliseconds since 1970")
        }
    }
}

/// What a token has to be bound to.
package struct IntegrityTerms: Hashable, Sendable {
    /// The package of the key's app.
    package let package: String
    /// SHA-256 of the signing certificates that the app's policy names.
    package let signers: Set<[UInt8]>
    /// The id of the key that has signed the request, or that is to be enrolled.
    package let keyID: [UInt8]
    /// SHA-256 of what the client has signed.
    package let clientDataHash: SHA256Digest
    /// As ``IntegritySettings/ageMax``.
    package let ageMax: Int64
    /// The greatest ``ageMax``, in seconds.
    package static let ageMost: Int64 = 3_600
    /// Seconds by which Google's clock may be ahead.
    package static let leeway: Int64 = 60

    package init(
        package: String,
        signers: Set<[UInt8]>,
        keyID: [UInt8],
        clientDataHash: SHA256Digest,
        ageMax: Int64
    ) {
        self.keyID = keyID
        self.package = package
        self.signers = signers
        self.clientDataHash = clientDataHash
        self.ageMax = ageMax
    }
}

/// What is found of a token.
package enum IntegrityFinding: Hashable, Sendable {
    /// Google has made it for this request of this app.
    ///
    /// - use: names the token among all.
    /// - end: second of Unix time from which on it is refused in any case, whatever
    ///   `max_token_age` a reload sets: it must not be forgotten while it may be good again.
    case good(IntegrityVerdict, use: SHA256Digest, end: Int64)
    /// The token is at fault, or what its client made Google answer.
    case refused(IntegrityRefusal)
    /// Google's service or the settings are at fault, whatever the token.
    case failed(PartyFault)

    /// The label of metrics and the word of the log.
    package var word: String {
        switch self {
        case .good: "good"
        case .refused(let refusal): refusal.rawValue
        case .failed(let fault): fault.word("account")
        }
    }

    /// The meaning of a reply about a made-up token.
    package init(ofTrial reply: CallReply) {
        let terms = IntegrityTerms(
            package: "",
            signers: [],
            keyID: [],
            clientDataHash: SHA256.digest(of: []),
            ageMax: 0
        )
        self.init(reply, terms, now: 0)
    }

    /// Judges the reply of Google's service.
    ///
    /// Google answers 400 and 403 to tokens that it can't read, and to those of another app. So
    /// these refuse the token. Otherwise a client could choose a token for which a rule forwards.
    package init(_ reply: CallReply, _ terms: IntegrityTerms, now: Int64) {
        if let fault = PartyFault(reply) {
            self = .failed(fault)
            return
        }
        switch reply {
        case .answered(401, _, _): self = .failed(.credentialRefused)
        case .answered(200, _, let body):
            do throws(JSONError) {
                self = try IntegrityPayload(answer: body).judged(terms, now: now)
            } catch {
                self = .failed(.unreadable)
            }
        case .answered(403, _, _): self = .refused(.denied)
        case .answered(400, _, _), .answered(413, _, _), .answered(422, _, _):
            self = .refused(.invalid)
        case .answered, .unsent, .failed: self = .failed(.callRefused)
        }
    }
}

extension IntegrityFinding {
    /// Reads and judges a token of a classic request here. No party can fail.
    package init(
        _ text: [UInt8],
        readBy keys: ClassicTokenKeys,
        _ terms: IntegrityTerms,
        now: Int64
    ) {
        do {
            let payload = try keys.payload(of: text.span)
            self = try IntegrityPayload(payload: payload).judged(terms, now: now)
        } catch TokenFault.malformed {
            self = .refused(.malformed)
        } catch {
            self = .refused(.invalid)
        }
    }
}

extension IntegrityPayload {
    /// Judges what the token says by what it has to be bound to: package, request, signer, age.
    package func judged(_ terms: IntegrityTerms, now: Int64) -> IntegrityFinding {
        guard package == terms.package, seenPackage == nil || seenPackage == package else {
            return .refused(.otherPackage)
        }
        guard let hash, !hash.isEmpty else { return .refused(.unbound) }
        guard let bound = Base64.decode(hash),
            terms.clientDataHash.isEqual(constantTime: bound.span)
        else { return .refused(.otherRequest) }
        let named = signers.compactMap { Base64.decode($0) }
        guard signers.isEmpty || !terms.signers.isDisjoint(with: named) else {
            return .refused(.otherSigner)
        }
        let second = milliseconds / 1_000
        guard second <= now + IntegrityTerms.leeway else { return .refused(.notYet) }
        guard now - second <= terms.ageMax else { return .refused(.expired) }
        // Google's service may read two spellings of one token, so its text does not name it. Two
        // phones may have bound theirs to the same bytes, where no challenge is signed.
        let name = Array("\(package) \(milliseconds) ".utf8) + terms.keyID
        let use = SHA256.digest(of: name + terms.clientDataHash.array)
        return .good(verdict, use: use, end: second + IntegrityTerms.ageMost + 1)
    }
}

/// Why a token is refused. The raw value is a label of metrics and a word of the log.
package enum IntegrityRefusal: String, CaseIterable, Hashable, Sendable {
    /// No request of Play Integrity gives such a text.
    case malformed
    /// Google has not made it, or can't read it.
    case invalid
    /// Google does not read it for this service account: it is of another app, or the account has
    /// no right to this one.
    case denied
    /// It was made for another app.
    case otherPackage = "other-package"
    /// The app was signed with another certificate than those of the policy.
    case otherSigner = "other-signer"
    /// It has neither `requestHash` nor `nonce`.
    case unbound
    /// It is bound to something else than this request.
    case otherRequest = "other-request"
    case expired
    /// Google's clock is ahead of this one by more than a minute.
    case notYet = "not-yet"
}
