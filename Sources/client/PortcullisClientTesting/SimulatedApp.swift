internal import Crypto
internal import Encodings
internal import Foundation

/// The app whose keys are made: what authenticator data say of it.
struct SimulatedApp: Sendable {
    /// Prefix, full stop, bundle identifier.
    let appID: String
    /// What the leaf says of the device.
    let device: SoftwareAttestationService.Device
    /// What iOS 27 and later add to each object, in CBOR; nothing for older systems.
    let extensionMap: [UInt8]

    /// An app without extensions, or with those of a build.
    init(
        appID: String,
        device: SoftwareAttestationService.Device,
        build: SoftwareAttestationService.Build?
    ) {
        (self.appID, self.device) = (appID, device)
        guard let build else {
            extensionMap = []
            return
        }
        // Little-endian, unlike every other number of the protocol.
        let category = (0..<4).map {
            UInt8(truncatingIfNeeded: build.validationCategory >> (8 * UInt32($0)))
        }
        extensionMap =
            CBORValue.map([
                .init(.text("apple_bundle_version_01"), .text(build.bundleVersion)),
                .init(.text("apple_validation_category_01"), .bytes(category)),
            ]).encoded
    }

    /// The fixed part, 37 bytes: SHA-256 of the App ID, flags, counter. The flags are 0x40 in
    /// genuine objects before iOS 27, and 0xC0 in those with extensions.
    func authenticatorData(counter: UInt32) -> [UInt8] {
        let number = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: counter >> UInt32($0)) }
        return Array(SHA256.hash(data: Data(appID.utf8))) + [extensionMap.isEmpty ? 0x40 : 0xC0]
            + number
    }
}

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
