import AppAttest
import Cryptography
import KeyAttestation
import KeyStore
import Rules
import SoftwareAuthenticator

// Android phones of a trial.
extension Trial {
    static let package = "com.example.shop"

    /// - `id`: the package's name.
    static func androidPolicy(
        _ id: String = package,
        _ environments: Set<AttestationEnvironment> = [.production],
        _ edit: (inout AndroidDemands.Settings) -> Void = { _ in }
    ) -> AppPolicy {
        var settings = AndroidDemands.Settings()
        settings.signers = [SoftwarePhone.signer]
        edit(&settings)
        return policy(id, environments) { $0.android = AndroidDemands(settings) }
    }

    /// A phone with the app on it.
    static func phone(
        package: String = package,
        _ edit: (inout SoftwarePhone) -> Void = { _ in }
    ) -> SoftwareDevice {
        var phone = SoftwarePhone()
        edit(&phone)
        return SoftwareDevice(authority: authority, package: package, phone: phone)
    }

    /// A trial of both apps.
    static func ofBothApps(
        _ edit: (inout AndroidDemands.Settings) -> Void = { _ in }
    ) throws -> Trial {
        try Trial([policy(), androidPolicy(package, [.production], edit)])
    }

    /// A phone's key that is in the table.
    func enrolledPhoneKey(
        issued: UInt32? = nil,
        daysAgo days: Int64 = 0
    ) -> SoftwareKey {
        let key = Self.phone().makeKey()
        var record = KeyRecord(
            keyID: key.keyID,
            appID: Self.package,
            environment: .production,
            publicKey: key.publicKey,
            enrolledAt: now.seconds - days * 86_400
        )
        record.platform = .android
        record.chain = ChainRecord(serials: ["1"], certificatesIssued: issued)
        journal.add(record)
        return key
    }
}
