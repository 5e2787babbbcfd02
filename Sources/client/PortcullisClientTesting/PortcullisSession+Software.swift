public import Foundation
public import PortcullisClient

extension PortcullisSession {
    /// A session with a device in software, as most tests need it: the keys are files in a folder,
    /// and the record is the file `record-` in it, with the gateway's host after the dash.
    ///
    /// - Parameters:
    ///   - gateway: as `http://127.0.0.1:8080`.
    ///   - appID: as in the gateway's configuration: prefix, full stop, bundle identifier.
    ///   - authority: whose root the gateway trusts.
    ///   - folder: made if need be.
    ///   - plan: what routes ask, as `portcullis plan` wrote it; `nil` to learn it from answers.
    /// - Throws: when the folder can't be made.
    public convenience init(
        gateway: URL,
        appID: String,
        authority: TestAuthority,
        folder: URL,
        plan: SigningPlan? = nil
    ) throws {
        var configuration = PortcullisConfiguration(gateway: gateway)
        configuration.plan = plan
        configuration.deviceTokens = SoftwareDeviceTokenService()
        self.init(
            configuration,
            service: try SoftwareAttestationService(
                appID: appID,
                authority: authority,
                folder: folder
            ),
            store: FileEnrolmentStore(file: folder.appending(path: "record"))
        )
    }
}

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
