package import AppAttest
package import KeyAttestation
package import Signatures

/// One app on one platform, and the demands on its keys.
package struct AppPolicy: Sendable {
    /// How the client makes `clientDataHash` for `attestKey` out of the challenge's text.
    package enum ClientDataHash: String, CaseIterable, Sendable {
        /// SHA-256 of the text's bytes, as Apple's documentation has it.
        case sha256
        /// The text's bytes themselves, as Apple's sample has it.
        case raw
    }

    /// Which checks apply: a Mac's certificate has to have the right access control list. With
    /// `macos` that holds for every certificate that does not show another device.
    package enum Platform: String, CaseIterable, Sendable {
        case ios, macos
    }

    /// Whether an attestation must carry a receipt that verifies.
    package enum Receipt: String, CaseIterable, Sendable {
        case optional, required
    }

    /// The App ID: prefix, dot, bundle identifier. Of an Android app its package name.
    package let id: String
    /// SHA-256 of the id.
    package let hash: AppIDHash
    /// The environments that are accepted, of which Android has production alone; empty only for an
    /// app that is for tests alone.
    package let environments: Set<AttestationEnvironment>
    /// The authorities that are trusted beside Apple's, or in the place of Google's; empty unless
    /// this is a test app.
    ///
    /// Keys that they attest have the environment `test`, whatever an AAGUID says.
    package var testRoots: [X509Certificate] = []
    package var clientDataHash = ClientDataHash.sha256
    package var platform = Platform.ios
    /// Which builds are accepted, by what iOS and macOS 27 and later sign.
    package var builds = BuildPolicy.any
    package var receipt = Receipt.optional
    /// What is asked of the phones of an Android app; `nil` for an app of Apple's systems.
    package var android: AndroidDemands?

    package init(id: String, environments: Set<AttestationEnvironment>) {
        self.id = id
        hash = AppIDHash(appID: id)
        self.environments = environments
    }

    /// Who attests the app's keys. A request has to bring what keys of that platform sign.
    package var attestedBy: DevicePlatform { android == nil ? .apple : .android }
    /// Whether a test authority is trusted; every verdict about its keys then says `test`.
    package var isTest: Bool { !testRoots.isEmpty }
    /// Whether keys of devices in the field are accepted.
    ///
    /// A rule that names no apps admits the keys of such apps. Keys of test authorities, and of
    /// apps for developers alone, pass only where a rule names their app.
    package var isProduction: Bool { environments.contains(.production) }
}

/// What is asked of the phones of an Android app, beside what is asked of every phone.
///
/// A reference: each request finds its app, and that copies one word.
package final class AndroidDemands: Sendable {
    /// What the chain of a phone has to say; ``expected(_:at:)`` adds the patch level.
    package struct Settings: Hashable, Sendable {
        /// `signers`: SHA-256 of each signing certificate that is accepted.
        package var signers: Set<[UInt8]> = []
        /// `level`, `provisioning` and `boot`.
        package var phone = AndroidPolicy.standard
        /// `versions.min`: the lowest accepted version code; `nil` accepts every one.
        package var versionMin: Int64?
        /// `patch.max_age`: the greatest age of the system's patch level in days; `nil` accepts
        /// every one.
        package var patchDaysMax: Int64?
        /// `max_key_age`: days after which a key has to be replaced by a new one; `nil` for never.
        package var keyDaysMax: Int64?
        /// `status_max_age`: seconds for which Google's status list is good. Default a day.
        package var statusSecondsMax: Int64 = 86_400
        /// `on_error`: whether a phone may enrol while there is no such list.
        package var onError = DependencyErrorRule.refuse
        /// `integrity`: what is asked of Google Play's verdict at an enrolment; `nil` for nothing.
        package var integrity: IntegrityRule?

        package init() {}
    }

    package let settings: Settings

    package init(_ settings: Settings) { self.settings = settings }

    /// The app in the form that a chain is judged by.
    package func expected(_ package: String, at now: UnixTime) -> ExpectedAndroidApp {
        var policy = settings.phone
        policy.osPatchLevelMin = settings.patchDaysMax.map { Self.month(daysBefore: now, $0) }
        return ExpectedAndroidApp(package: package, signers: settings.signers, policy: policy)
    }

    /// The month of a day, such as 202601, which is the form of a patch level.
    private static func month(daysBefore now: UnixTime, _ days: Int64) -> Int64 {
        let date = now.advanced(bySeconds: -days * 86_400).iso8601
        return Int64(date.prefix(7).filter(\.isNumber)) ?? 0
    }
}
