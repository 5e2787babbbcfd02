internal import Encodings
public import Signatures

/// The contents of a receipt.
///
///     SET OF SEQUENCE { INTEGER type, INTEGER version, OCTET STRING value }      unordered
///
///      2 App ID           text
///      3 attested key     a whole X.509 certificate, DER
///      4 client hash      the bytes that were handed to attestKey
///      5 token            opaque
///      6 type             "ATTEST" or "RECEIPT"
///      7 environment      "sandbox" or "production"; undocumented
///     12 creation time    2020-08-23T11:55:24.309Z
///     17 risk metric      decimal text; RECEIPT only
///     19 not before       RECEIPT only
///     21 expiration       creation + 90 days
///
/// Fields 2, 3, 6 and 12 are required, because the checks need them. No field may occur
/// twice. Other fields are skipped.
public struct ReceiptFields: Sendable {
    /// The origin of a receipt.
    ///
    /// Frozen: another word in a receipt is malformed.
    @frozen
    public enum Kind: String, Codable, Sendable, CaseIterable {
        case attest = "ATTEST"
        /// From Apple's server, in exchange for an older one, with a risk metric.
        case receipt = "RECEIPT"
    }

    /// The most fields that are read.
    public static let fieldsMax = 64

    /// 2: the App ID.
    public let appID: String
    /// 3: the certificate of the attested key.
    public let certificate: X509Certificate
    /// 4: the value that the app handed to `attestKey`.
    public let clientHash: [UInt8]?
    /// 5: a token for Apple.
    public let token: [UInt8]?
    /// 6: the origin of the receipt.
    public let kind: Kind
    /// 7: "sandbox" or "production".
    public let environment: String?
    /// 12: when Apple made the receipt.
    public let creationTime: UnixTime
    /// 17: about how many keys of the app the device has had attested within 30 days; `nil` where
    /// the field is missing or is no number.
    public let riskMetric: UInt32?
    /// 19: before this time, Apple gives no newer receipt.
    public let notBefore: UnixTime?
    /// 21: after this time, Apple no longer accepts the receipt.
    public let expirationTime: UnixTime?

    init(_ payload: [UInt8]) throws(ReceiptRefusal) {
        let fields = try Self.fields(payload)
        appID = try Self.text(fields[2], "field 2")
        kind = try Self.required(
            Kind(rawValue: Self.text(fields[6], "field 6")),
            "field 6 is neither ATTEST nor RECEIPT"
        )
        creationTime = try Self.required(Self.time(fields[12], "field 12"), "field 12 is missing")
        notBefore = try Self.time(fields[19], "field 19")
        expirationTime = try Self.time(fields[21], "field 21")
        clientHash = fields[4]
        token = fields[5]
        environment = try fields[7].map { bytes throws(ReceiptRefusal) in
            try Self.text(bytes, "field 7")
        }
        riskMetric = fields[17].flatMap(Self.metric)
        do throws(X509CertificateError) {
            certificate = try X509Certificate(der: fields[3] ?? [])
        } catch {
            throw ReceiptRefusal(.malformed, "field 3: \(error.detail)")
        }
    }

    private static func fields(_ payload: [UInt8]) throws(ReceiptRefusal) -> [Int: [UInt8]] {
        let whole = ContiguousArray(payload)
        let bytes = whole.span
        var fields: [Int: [UInt8]] = [:]
        do throws(DERError) {
            var outer = DERCursor(0..<bytes.count)
            var set = DERCursor(try outer.next(.set, in: bytes))
            try outer.finish()
            while !set.isAtEnd {
                var field = DERCursor(try set.next(.sequence, in: bytes))
                let type = try field.smallInteger(in: bytes)
                // The version has always been 1. The meaning of another one is unknown, so it is
                // not compared.
                _ = try field.smallInteger(in: bytes)
                let value = try field.next(.octetString, in: bytes)
                try field.finish()
                guard fields[type] == nil else { throw DERError(.duplicate, at: value.lowerBound) }
                guard fields.count < fieldsMax else {
                    throw DERError(.tooMany, at: value.lowerBound)
                }
                fields[type] = bytes.copy(value)
            }
        } catch {
            throw ReceiptRefusal(.malformed, "payload: \(error.reason.rawValue) at \(error.offset)")
        }
        return fields
    }

    private static func required<Value>(
        _ value: Value?,
        _ otherwise: String
    ) throws(ReceiptRefusal) -> Value {
        guard let value else { throw ReceiptRefusal(.malformed, otherwise) }
        return value
    }

    private static func text(_ bytes: [UInt8]?, _ name: String) throws(ReceiptRefusal) -> String {
        guard let bytes, !bytes.isEmpty, let text = String(utf8: bytes) else {
            throw ReceiptRefusal(.malformed, "\(name) is missing or no text")
        }
        return text
    }

    private static func time(
        _ bytes: [UInt8]?,
        _ name: String
    ) throws(ReceiptRefusal) -> UnixTime? {
        guard let bytes else { return nil }
        return try required(UnixTime(iso8601: ContiguousArray(bytes).span), "\(name) is no time")
    }

    /// Text that is no number says nothing about the device. The receipt stays useful, since the
    /// next one is requested with it.
    private static func metric(_ bytes: [UInt8]) -> UInt32? {
        let isDecimal = bytes.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return isDecimal ? UInt32(String(decoding: bytes, as: UTF8.self)) : nil
    }
}

/// An object of the receipt's fields: times in ISO 8601, bytes in base64. A missing member is a
/// field that the receipt lacked.
extension ReceiptFields: Codable {
    private enum CodingKeys: String, CodingKey {
        case appID = "app_id"
        case certificate
        case clientHash = "client_hash"
        case token
        case kind = "type"
        case environment
        case creationTime = "creation_time"
        case riskMetric = "risk_metric"
        case notBefore = "not_before"
        case expirationTime = "expiration_time"
    }
}
