package import Encodings
package import OutboundCalls

/// What a service answers about a token.
///
/// Types are read strictly: `"true"` is no boolean. Unknown members are skipped, a known one that
/// occurs twice makes the answer unreadable.
package struct SiteverifyAnswer: Hashable, Sendable {
    /// `success`, or `tokenProperties.valid`.
    package var isValid: Bool
    /// `error-codes`, or `tokenProperties.invalidReason`.
    package var codes: [String] = []
    /// The site or app where the test was passed: `hostname`, `apk_package_name`,
    /// `androidPackageName` or `iosBundleId`, in lower case.
    package var hostname: String?
    package var action: String?
    package var score: TestScore?

    /// The most codes of an answer, and the most bytes of a text in it.
    package static let codesMax = 16
    package static let textBytesMax = 256

    package init(isValid: Bool) { self.isValid = isValid }

    package init(_ content: [UInt8], of service: SiteverifySettings.Service) throws(JSONError) {
        switch service {
        case .recaptcha, .hcaptcha, .turnstile: try self.init(siteverify: content.span)
        case .enterprise: try self.init(assessment: content.span)
        }
    }

    private init(siteverify text: Span<UInt8>) throws(JSONError) {
        var reader = JSONReader()
        var seen: Set<String> = []
        var success: Bool?
        self.init(isValid: false)
        try reader.beginObject(text)
        while let name = try reader.nextName(text).map({ String(decoding: $0, as: UTF8.self) }) {
            switch name {
            case "success":
                try Self.once(name, seen: &seen, reader: reader)
                success = try Self.flag(&reader, text)
            case "error-codes":
                try Self.once(name, seen: &seen, reader: reader)
                codes = try Self.list(&reader, text)
            case "hostname", "apk_package_name":
                try Self.once("hostname", seen: &seen, reader: reader)
                hostname = try Self.text(&reader, text)?.lowercased()
            case "action":
                try Self.once(name, seen: &seen, reader: reader)
                action = try Self.text(&reader, text)
            case "score":
                try Self.once(name, seen: &seen, reader: reader)
                score = try Self.score(&reader, text)
            default: try reader.skipValue(text, depth: 1)
            }
        }
        try reader.end(text)
        guard let success else { throw reader.error("success is missing") }
        // An answer that says both is believed in neither.
        guard !success || codes.isEmpty else { throw reader.error("a success with error codes") }
        isValid = success
    }

    /// Members with their default value may be missing (protobuf, "ProtoJSON Format"): an absent
    /// `valid` is false, and an absent `score` of a present `riskAnalysis` is 0.
    private init(assessment text: Span<UInt8>) throws(JSONError) {
        var reader = JSONReader()
        var seen: Set<String> = []
        self.init(isValid: false)
        try reader.beginObject(text)
        while let name = try reader.nextName(text).map({ String(decoding: $0, as: UTF8.self) }) {
            switch name {
            case "riskAnalysis":
                try Self.once(name, seen: &seen, reader: reader)
                score = TestScore(0.0)
                try reader.beginObject(text)
                while let inner = try reader.nextName(text) {
                    guard inner == Array("score".utf8) else {
                        try reader.skipValue(text, depth: 2)
                        continue
                    }
                    try Self.once("score", seen: &seen, reader: reader)
                    score = try Self.score(&reader, text)
                }
            case "tokenProperties":
                try Self.once(name, seen: &seen, reader: reader)
                try readProperties(&reader, text: text, seen: &seen)
            default: try reader.skipValue(text, depth: 1)
            }
        }
        try reader.end(text)
        guard seen.contains("tokenProperties") else {
            throw reader.error("tokenProperties is missing")
        }
    }

    private mutating func readProperties(
        _ reader: inout JSONReader,
        text: Span<UInt8>,
        seen: inout Set<String>
    ) throws(JSONError) {
        try reader.beginObject(text)
        while let name = try reader.nextName(text).map({ String(decoding: $0, as: UTF8.self) }) {
            switch name {
            case "valid":
                try Self.once(name, seen: &seen, reader: reader)
                isValid = try Self.flag(&reader, text)
            case "invalidReason":
                try Self.once(name, seen: &seen, reader: reader)
                codes = try Self.text(&reader, text).map { [$0] } ?? []
            case "hostname", "androidPackageName", "iosBundleId":
                // All three are there, and those of the other platforms are empty.
                try Self.once(name, seen: &seen, reader: reader)
                guard let value = try Self.text(&reader, text), !value.isEmpty else { continue }
                guard hostname == nil else { throw reader.error("a site and an app") }
                hostname = value.lowercased()
            case "action":
                try Self.once(name, seen: &seen, reader: reader)
                action = try Self.text(&reader, text)
            default: try reader.skipValue(text, depth: 2)
            }
        }
    }

    // MARK: Values

    private static func once(
        _ name: String,
        seen: inout Set<String>,
        reader: JSONReader
    ) throws(JSONError) {
        guard seen.insert(name).inserted else { throw reader.error("\(name) occurs twice") }
    }

    private static func flag(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> Bool {
        guard case .boolean(let flag) = try reader.scalar(text) else {
            throw reader.error("use true or false")
        }
        return flag
    }

    /// A text, or null.
    private static func text(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> String? {
        switch try reader.scalar(text) {
        case .null: return nil
        case .string(let bytes) where bytes.count <= textBytesMax:
            return String(decoding: bytes, as: UTF8.self)
        default: throw reader.error("use a text of at most \(textBytesMax) bytes")
        }
    }

    /// A list of texts, or null.
    private static func list(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> [String] {
        guard reader.peek(text) == UInt8(ascii: "[") else {
            guard try Self.text(&reader, text) == nil else { throw reader.error("use a list") }
            return []
        }
        var list: [String] = []
        try reader.beginArray(text)
        while try reader.nextElement(text) {
            guard list.count < codesMax, let code = try Self.text(&reader, text) else {
                throw reader.error("use at most \(codesMax) texts")
            }
            list.append(code)
        }
        return list
    }

    private static func score(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> TestScore {
        _ = reader.peek(text)
        let start = reader.index
        try reader.skipValue(text, depth: 2)
        let written = text.extracting(start..<reader.index).withUnsafeBufferPointer {
            String(decoding: $0, as: UTF8.self)
        }
        guard let score = Double(written).flatMap({ TestScore($0) }) else {
            throw reader.error("use a number from 0 to 1")
        }
        return score
    }
}

/// What a reply of a service means for the token.
package enum SiteverifyVerdict: Hashable, Sendable {
    /// A person has passed the test where and as the settings ask.
    case good
    /// The token is at fault, or what its client made the service answer.
    case refused(TestRefusal)
    /// The service or its settings are at fault, whatever the token.
    case failed(PartyFault)

    /// The label of metrics and the word of the log.
    package var word: String {
        switch self {
        case .good: "good"
        case .refused(let refusal): refusal.rawValue
        case .failed(let fault): fault.word("secret")
        }
    }

    package init(_ reply: CallReply, _ settings: SiteverifySettings) {
        if let fault = PartyFault(reply) {
            self = .failed(fault)
            return
        }
        guard case .answered(let status, _, let body) = reply else {
            self = .failed(.unreadable)
            return
        }
        do throws(JSONError) {
            let answer = try SiteverifyAnswer(body, of: settings.service)
            self = Self.judged(answer, status: status, settings: settings)
        } catch {
            self = Self.unread(status)
        }
    }

    /// The meaning of an answer without content that can be read.
    private static func unread(_ status: Int) -> SiteverifyVerdict {
        switch status {
        case 200: .failed(.unreadable)
        case 401, 403: .failed(.credentialRefused)
        // A token may have caused it: its form, or its length.
        case 400, 413, 414, 422: .refused(.call)
        // No such address, or a redirect, which is not followed.
        default: .failed(.callRefused)
        }
    }

    private static func judged(
        _ answer: SiteverifyAnswer,
        status: Int,
        settings: SiteverifySettings
    ) -> SiteverifyVerdict {
        guard answer.isValid else {
            // Turnstile answers 400 with codes.
            guard status == 200 || !answer.codes.isEmpty else { return unread(status) }
            return invalid(answer.codes)
        }
        guard status == 200 else { return .failed(.unreadable) }
        let isOfSite =
            settings.hostnames.isEmpty
            || answer.hostname.map { settings.hostnames.contains($0) } ?? false
        guard isOfSite else { return .refused(.hostname) }
        guard settings.action == nil || answer.action == settings.action else {
            return .refused(.action)
        }
        if let least = settings.scoreMin {
            guard let score = answer.score else { return .refused(.noScore) }
            guard score >= least else { return .refused(.score) }
        }
        if let greatest = settings.scoreMax {
            guard let score = answer.score else { return .refused(.noScore) }
            guard score <= greatest else { return .refused(.score) }
        }
        return .good
    }

    /// The worst of the codes decides. A code that is not known is no reason to forward.
    private static func invalid(_ codes: [String]) -> SiteverifyVerdict {
        let meanings = codes.map { meaning($0) }
        return meanings.first { if case .failed = $0 { true } else { false } }
            ?? meanings.first ?? .refused(.invalid)
    }

    private static func meaning(_ code: String) -> SiteverifyVerdict {
        switch code {
        case "missing-input-secret", "invalid-input-secret": .failed(.credentialRefused)
        case "missing-remoteip", "invalid-remoteip": .failed(.callRefused)
        case "internal-error": .failed(.broken())
        case "missing-input-response", "invalid-input-response", "MALFORMED", "MISSING":
            .refused(.invalid)
        // reCAPTCHA and Turnstile don't say which.
        case "timeout-or-duplicate": .refused(.expiredOrUsed)
        case "expired-input-response", "EXPIRED": .refused(.expired)
        case "already-seen-response", "invalid-or-already-seen-response", "DUPE": .refused(.used)
        // A token of another operator's key, or of a key for tests: any client has one.
        case "sitekey-secret-mismatch", "not-using-dummy-passcode": .refused(.otherKey)
        case "bad-request": .refused(.call)
        case "BROWSER_ERROR", "browser-error": .refused(.browser)
        default: .refused(.unknownCode)
        }
    }
}

/// Why a token is refused. The raw value is a label of metrics and a word of the log.
package enum TestRefusal: String, CaseIterable, Hashable, Sendable {
    /// The service has not made it.
    case invalid
    case expired
    case used
    /// Too old, or used before: the service does not say which.
    case expiredOrUsed = "expired-or-used"
    /// The browser could not finish the test.
    case browser
    /// The token is of another key than the settings' one.
    case otherKey = "other-key"
    /// It was got on another site, or in another app.
    case hostname
    case action
    case score
    /// The settings ask for a score, and the service gives none.
    case noScore = "no-score"
    /// The service calls the question malformed. The token may be why.
    case call = "call-malformed"
    /// The service names a reason that is not known here.
    case unknownCode = "unknown-code"
}
