/// Why nothing can be sent, in a sentence, with what to do.
package struct LoadError: Error, Sendable, CustomStringConvertible {
    /// The sentence.
    package let description: String

    package init(_ description: String) { self.description = description }
}
