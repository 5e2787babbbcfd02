import ConfigurationReading

/// Why the gateway did not start or reload, with the next step.
package struct GatewayError: Error, CustomStringConvertible {
    package let what: String
    package let hint: String

    /// Whether another user could start it.
    let isAboutWhoStarts: Bool

    package init(_ what: String, hint: String, isAboutWhoStarts: Bool = false) {
        self.what = what
        self.hint = hint
        self.isAboutWhoStarts = isAboutWhoStarts
    }

    /// Errors in a configuration that can be read.
    init(_ errors: [Problem], file: String) {
        self.init(
            errors.map(\.text).joined(separator: "\n"),
            hint: "Mend what is named; `portcullis check \(file)` says whether all is well."
        )
    }

    package var description: String { "\(what)\n  \(hint)" }
}
