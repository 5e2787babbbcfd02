public import Foundation
public import PortcullisClient

/// DeviceCheck in software, where a device has none: in the Simulator, in continuous integration,
/// on Linux.
///
/// Its tokens name a device that you choose. Apple takes none of them: a gateway needs a stand-in
/// for Apple under `apple.hosts.device_check_test`, or the rule `on_error: forward`.
public struct SoftwareDeviceTokenService: DeviceTokenService {
    /// The device's name, under which its bits are kept.
    public let device: String

    /// Tokens of a device.
    ///
    /// - Parameter device: a name without line breaks.
    public init(device: String = "software") { self.device = device }

    /// Software makes tokens everywhere.
    public var isSupported: Bool { true }

    /// Makes a new token: `device-token`, `test`, the device, and a random text, in four lines.
    public func generateToken() -> Data {
        Data("device-token\ntest\n\(device)\n\(UUID().uuidString)".utf8)
    }
}
