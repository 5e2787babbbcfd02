internal import Crypto
internal import Foundation
internal import StrictCBOR

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
