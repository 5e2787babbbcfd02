internal import AppAttest
internal import Cryptography
internal import Encodings

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
            .init("common_name", .text(certificate.subject(.commonName))),
            .init("organization", .text(certificate.subject(.organization))),
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
