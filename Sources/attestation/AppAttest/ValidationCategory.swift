/// How the system judged the build that made an object (`apple_validation_category_01`, iOS and
/// macOS 27 and later).
public struct ValidationCategory: RawRepresentable, Hashable, Codable, Sendable {
    /// Apple's number.
    public let rawValue: UInt32

    /// The category of a number, whether it has a name or not.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// 0: not valid.
    public static let invalid = ValidationCategory(rawValue: 0)
    /// 1: an executable of the operating system.
    public static let operatingSystem = ValidationCategory(rawValue: 1)
    /// 2: TestFlight.
    public static let testFlight = ValidationCategory(rawValue: 2)
    /// 3: a development build.
    public static let development = ValidationCategory(rawValue: 3)
    /// 4: App Store.
    public static let appStore = ValidationCategory(rawValue: 4)
    /// 5: enterprise or ad hoc distribution.
    public static let enterprise = ValidationCategory(rawValue: 5)
    /// 6: Developer ID.
    public static let developerID = ValidationCategory(rawValue: 6)
    /// 10: other.
    public static let other = ValidationCategory(rawValue: 10)

    /// A short name in kebab-case; the number where Apple gives none.
    public var name: String {
        switch rawValue {
        case 0: "invalid"
        case 1: "operating-system"
        case 2: "test-flight"
        case 3: "development"
        case 4: "app-store"
        case 5: "enterprise"
        case 6: "developer-id"
        case 10: "other"
        default: String(rawValue)
        }
    }

    /// The category of a name or a number in decimal; `nil` for other text.
    public init?(name: String) {
        if let number = UInt32(name) {
            self.init(rawValue: number)
            return
        }
        guard let known = (UInt32(0)...10).first(where: { Self(rawValue: $0).name == name }) else {
            return nil
        }
        self.init(rawValue: known)
    }
}
