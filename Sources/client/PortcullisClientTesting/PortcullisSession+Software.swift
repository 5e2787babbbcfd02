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
