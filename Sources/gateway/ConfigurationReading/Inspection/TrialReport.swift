internal import AppAttest
internal import Cryptography
package import Encodings

// The work of `portcullis verify` and `portcullis inspect`, without the command line.
//
// A trial (`AttestationTrial`, `AssertionTrial`, `ReceiptTrial`, `AndroidTrial`) is made of option
// texts as someone typed them, and throws a `UsageError` for one that cannot be meant. It then
// judges one object and gives a `TrialReport`: one JSON object and an exit status. Judging is
// AppAttest's and KeyAttestation's; nothing is decided here but what a receipt's expiration means.
//
// A description (`ObjectDescription`) shows the contents of an object and judges nothing.
//
// Objects come in files, raw or in base64: see `ObjectFile`, the only code here that reads any. No
// code here reads the clock: times are options, and the caller gives the time for the word `now`.

/// Why a command line can't be used: the option, the finding, and the next step.
package struct UsageError: Error, Hashable, Sendable {
    /// The option or argument, as it is written.
    package let place: String
    /// The finding, and a valid input.
    package let text: String

    package init(_ place: String, _ text: String) {
        self.place = place
        self.text = text
    }

    /// The message for people, on one line.
    package var message: String { "\(place): \(text)" }
}

/// The answer of `verify` and `inspect`: the output and the exit status.
package struct TrialReport: Hashable, Sendable {
    /// The exit status. Wrong usage, status 2, is a ``UsageError`` and no report.
    package enum Status: Int32, Sendable {
        case accepted = 0
        case refused = 1
    }

    package let status: Status
    package let json: JSONValue

    /// The facts of an object that was accepted, or only described.
    static func accepted(_ facts: [JSONValue.Member]) -> TrialReport {
        TrialReport(status: .accepted, json: .object([.init("verdict", .string("accept"))] + facts))
    }

    /// Why an object was refused.
    static func refused(_ reason: String, _ detail: String) -> TrialReport {
        TrialReport(
            status: .refused,
            json: .object([
                .init("verdict", .string("refuse")), .init("reason", .string(reason)),
                .init("detail", .string(detail)),
            ])
        )
    }

    /// The report with a further member at the end.
    func adding(_ name: String, _ value: JSONValue) -> TrialReport { adding([.init(name, value)]) }

    /// The same with these members at the end.
    func adding(_ more: [JSONValue.Member]) -> TrialReport {
        guard case .object(let members) = json else { return self }
        return TrialReport(status: status, json: .object(members + more))
    }
}

/// The contents of objects, as members of JSON objects. Names are those of the gateway's logs and
/// of the options.
enum Facts {
    static func key(_ key: P256PublicKey) -> [JSONValue.Member] {
        [
            .init("key_id", .string(KeyID(of: key).base64)),
            .init("public_key", .string(Base64.text(key.x963))),
        ]
    }

    /// The build by the extensions of 27 and later.
    static func build(_ extensions: AuthenticatorExtensions) -> [JSONValue.Member] {
        [
            .init("validation_category", .text(extensions.validationCategory?.name)),
            .init("bundle_version", .text(extensions.bundleVersion)),
            .init("code_directory_hash", .text(extensions.codeDirectoryHash.map(hex))),
        ]
    }

    /// The leaf's facts about the device.
    static func device(_ details: LeafDetails) -> [JSONValue.Member] {
        [
            .init("os_version", .text(details.osVersion)),
            .init("os_build", .text(details.osBuild)),
            .init("platform", .text(details.platform)),
            .init("leaf_not_before", .string(details.notBefore.iso8601)),
            .init("leaf_not_after", .string(details.notAfter.iso8601)),
        ]
    }

    static func receipt(_ fields: ReceiptFields) -> [JSONValue.Member] {
        [
            .init("type", .string(fields.kind.rawValue)),
            .init("app_id", .string(fields.appID)),
            .init("environment", .text(fields.environment)),
            .init("creation_time", .string(fields.creationTime.iso8601)),
            .init("not_before", .text(fields.notBefore?.iso8601)),
            .init("expiration_time", .text(fields.expirationTime?.iso8601)),
            .init("risk_metric", fields.riskMetric.map { .number(Int64($0)) } ?? .null),
            .init("client_hash", .text(fields.clientHash.map { Base64.text($0) })),
        ]
    }

    static func certificate(_ certificate: X509Certificate) -> JSONValue {
        .object([
            .init("common_name", .text(certificate.subject[.commonName])),
            .init("organization", .text(certificate.subject[.organization])),
            .init("not_before", .string(certificate.notBefore.iso8601)),
            .init("not_after", .string(certificate.notAfter.iso8601)),
            .init("sha256", .string(hex(certificate.fingerprint.array))),
        ])
    }

    /// The mistake with which it would verify; `none` when none was found or possible.
    static func diagnosis(_ mistake: ClientMistake?) -> JSONValue {
        guard let mistake, mistake != .none else { return .array([]) }
        return .array([.string(mistake.rawValue)])
    }

    static func flags(_ flags: UInt8) -> String { "0x" + Hex.text([flags]) }

    static func hex(_ bytes: [UInt8]) -> String { Hex.text(bytes) }
}
