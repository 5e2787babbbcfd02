package import KeyAttestation
package import Signatures

/// What is asked of the phones of an Android app, beside what is asked of every phone.
///
/// A reference: each request finds its app, and that copies one word.
package final class AndroidDemands: Sendable {
    /// What the chain of a phone has to say; ``expected(of:at:)`` adds the patch level.
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
