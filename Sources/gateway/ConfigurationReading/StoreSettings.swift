package import Rules

/// The part of a configuration that commands about keys need.
package struct StoreSettings: Sendable {
    package let store: StorePlace
    package let apps: [AppPolicy]
}

/// Store and apps of a configuration, with what there is to say about the file.
package struct LoadedStore: Sendable {
    /// `nil` when there is an error among the problems.
    package let settings: StoreSettings?
    /// Errors and warnings, by file and line.
    package let problems: [Problem]
}
