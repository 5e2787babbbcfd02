/// Why a text is no JSON, or not the JSON that was asked for.
package struct JSONError: Error, Hashable, Sendable {
    /// The byte of the text where reading stopped, counted from 1.
    package let column: Int
    /// What is wrong there, for people.
    package let text: String
}

extension JSONError: CustomStringConvertible {
    package var description: String { "column \(column): \(text)" }
}
