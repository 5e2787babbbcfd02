/// Why the gateway did not start or reload: what, and what to do next.
package struct GatewayError: Error, CustomStringConvertible {
    package let what: String
    package let hint: String

    package init(_ what: String, hint: String) {
        self.what = what
        self.hint = hint
    }

    package var description: String { "\(what)\n  \(hint)" }
}
