/// Why a command line can't be used: which option, what was found, what to do.
package struct UsageError: Error, Hashable, Sendable {
    /// The option or argument, as it is written.
    package let place: String
    /// What was found, and what to give instead.
    package let text: String

    package init(_ place: String, _ text: String) {
        self.place = place
        self.text = text
    }

    /// The message for people, on one line.
    package var message: String { "\(place): \(text)" }
}
