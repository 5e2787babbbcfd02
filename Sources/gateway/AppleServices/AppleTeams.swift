/// The teams that have a key for Apple's services.
package struct AppleTeams: Hashable, Sendable {
    private let ids: Set<String>

    package init(_ credentials: [AppleCredential]) { ids = Set(credentials.map(\.teamID)) }

    /// The team that has a key; `nil` where several have one, or none.
    package var only: String? { ids.count == 1 ? ids.first : nil }

    /// The team whose key signs calls about an app; `nil` where no team has a key.
    ///
    /// It is named even if it is the only one: another one may have come before the call is made.
    /// The prefix of an old App ID may be none of a team, so it is looked at among several alone.
    package func team(of appID: String) -> String? {
        guard ids.count > 1 else { return ids.first }
        return String(appID.prefix { $0 != "." })
    }
}
