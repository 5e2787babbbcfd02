internal import Foundation
internal import StrictDER

/// What stands in the receipt of an attestation.
///
///     SET OF SEQUENCE { INTEGER type, INTEGER version, OCTET STRING value }
struct SimulatedReceipt: Sendable {
    /// Prefix, full stop, bundle identifier.
    let appID: String
    /// The certificate of the attested key, in DER.
    let leaf: [UInt8]
    /// What was handed to `attestKey`.
    let clientDataHash: Data
    /// When the key was attested.
    let madeAt: Date

    /// How long Apple exchanges a receipt for a newer one: 90 days, in seconds.
    private static let lifetime: Double = 90 * 86_400

    /// The fields in DER: kind, App ID, certificate, hash, environment, and the two times.
    var encoded: [UInt8] {
        let fields: [(type: UInt32, value: [UInt8])] = [
            (6, Array("ATTEST".utf8)), (2, Array(appID.utf8)), (3, leaf),
            (4, Array(clientDataHash)), (7, Array("production".utf8)),
            (12, Self.text(madeAt)), (21, Self.text(madeAt.addingTimeInterval(Self.lifetime))),
        ]
        return DEREncoder.set(
            fields.map { field in
                DEREncoder.sequence([
                    DEREncoder.integer(field.type), DEREncoder.integer(1),
                    DEREncoder.octetString(field.value),
                ])
            }
        )
    }

    /// `2026-08-23T11:55:24.309Z`.
    private static func text(_ time: Date) -> [UInt8] {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        return Array(time.formatted(style).utf8)
    }
}
