/// Keys of which apps a rule admits.
package enum AppScope: Hashable, Sendable {
    /// Of every production app (``AppPolicy/isProduction``).
    case production
    /// Of these apps, by App ID, in the order of the rule.
    case named([String])

    /// Whether keys of this app are admitted.
    package func admits(_ app: AppPolicy) -> Bool {
        switch self {
        case .production: app.isProduction
        case .named(let ids): ids.contains(app.id)
        }
    }
}
