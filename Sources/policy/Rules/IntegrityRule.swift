/// What Google Play says of a phone and its app, as far as rules ask for it.
package struct IntegrityVerdict: Hashable, Sendable {
    /// A label of `deviceRecognitionVerdict`. The raw value is a word of rules.
    package enum Device: String, CaseIterable, Comparable, Sendable {
        case basic, device, strong
        /// An emulator with Google Play's services.
        case virtual

        package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    /// `playProtectVerdict`. The raw value is a word of rules.
    package enum PlayProtect: String, CaseIterable, Sendable {
        case noIssues = "no-issues"
        case noData = "no-data"
        case possibleRisk = "possible-risk"
        case mediumRisk = "medium-risk"
        case highRisk = "high-risk"
        case unevaluated
    }

    /// The labels; none for a phone that Google does not trust.
    package var device: Set<Device> = []
    /// Whether the app is one that Google Play has distributed.
    package var isRecognized = false
    /// Whether the account has got the app from Google Play.
    package var isLicensed = false
    /// `deviceActivityLevel`, 1…4: how many tokens the phone has asked for lately; `nil` where
    /// Google does not tell.
    package var activity: Int?
    /// `nil` where Google does not tell.
    package var playProtect: PlayProtect?
    /// Whether the Play Console has made the verdict up, for a tester.
    package var isTest = false

    package init() {}
}

/// What a rule, or an app's enrolment, asks of Google Play's verdict about an Android phone.
///
/// It marks by default. Each condition refuses genuine phones: one that came without Google Play,
/// one whose owner has installed the app otherwise, one that Play Protect has not looked at.
package struct IntegrityRule: Hashable, Sendable {
    /// The treatment of a request against which the verdict speaks.
    package enum Action: String, CaseIterable, Sendable {
        /// It passes. Origin, log and metrics get the finding.
        case mark
        /// It is refused where the rule refuses.
        case refuse
    }

    /// What may not hold. The raw value is a word of the log and of the origin's field.
    package enum Condition: String, CaseIterable, Sendable {
        case test, device, recognized, licensed, activity
        case playProtect = "play-protect"
    }

    package static let activityLevels = 1...4

    /// The proof whose tokens carry the verdict.
    package var proof: TokenProof
    /// `device`: labels of which one is enough. Default none: any phone.
    package var device: Set<IntegrityVerdict.Device> = []
    /// `licensed`: whether the account has to have the app from Google Play. Default no.
    package var needsLicense = false
    /// `recognized`: whether the app has to be one that Google Play has distributed. Default no.
    package var needsRecognition = false
    /// `activity_max`: the greatest level of activity, 1…4. Default any.
    package var activityMax: Int?
    /// `play_protect`: the accepted words. Default any.
    package var playProtect: Set<IntegrityVerdict.PlayProtect> = []
    package var action = Action.mark

    package init(_ proof: TokenProof) { self.proof = proof }

    /// The conditions that do not hold. What Google does not tell does not hold.
    package func unmet(by verdict: IntegrityVerdict) -> [Condition] {
        Condition.allCases.filter { condition in
            switch condition {
            case .test: verdict.isTest
            case .device: !device.isEmpty && device.isDisjoint(with: verdict.device)
            case .recognized: needsRecognition && !verdict.isRecognized
            case .licensed: needsLicense && !verdict.isLicensed
            case .activity: activityMax.map { (verdict.activity ?? .max) > $0 } ?? false
            case .playProtect:
                !playProtect.isEmpty && !(verdict.playProtect.map(playProtect.contains) ?? false)
            }
        }
    }
}
