/// Which processes share the key whose record a `KeychainEnrolmentStore` holds.
///
/// The record's item and the mark of the install have to be reached by the same processes: with one
/// of them shared and the other not, two processes would take each other's record for that of an
/// earlier install, and overwrite it. So both come from one value.
public enum KeychainSharing: Hashable, Sendable {
    /// This app or extension alone.
    case none
    /// All apps and extensions of an app group: `group.com.example.shop`. On iPhones an app group
    /// is a Keychain group too.
    case appGroup(String)
    /// The item is in a Keychain group, `ABCDE12345.com.example.shop`, and the mark is in the
    /// container of an app group of the same apps and extensions.
    case keychainGroup(String, appGroup: String)

    /// The access group of the item; `nil` for that of the app.
    var accessGroup: String? {
        switch self {
        case .none: nil
        case .appGroup(let group), .keychainGroup(let group, _): group
        }
    }

    /// The app group that has the mark; `nil` for the app's own container.
    var container: String? {
        switch self {
        case .none: nil
        case .appGroup(let group), .keychainGroup(_, let group): group
        }
    }
}
