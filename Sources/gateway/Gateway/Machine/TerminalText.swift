/// A text as a command may print it: on a terminal it shows itself, and does nothing else.
///
/// Much of what commands print came from others: rows of a database, fields of requests, files.
/// What a terminal could take for a command, or for another direction of writing, is shown as
/// `\u{…}`. Lines and tabs stay.
package struct TerminalText {
    package let bytes: [UInt8]

    package init(_ text: String) {
        guard text.utf8.contains(where: Self.isSuspect) else {
            bytes = Array(text.utf8)
            return
        }
        var shown = ""
        for scalar in text.unicodeScalars {
            if Self.isShown(scalar) {
                shown.unicodeScalars.append(scalar)
            } else {
                shown += "\\u{\(String(scalar.value, radix: 16))}"
            }
        }
        bytes = Array(shown.utf8)
    }

    /// Whether a byte may belong to a character that is not shown: most texts have none.
    private static func isSuspect(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\n"), UInt8(ascii: "\t"): false
        default: byte < 0x20 || byte >= 0x7F
        }
    }

    private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control: scalar == "\n" || scalar == "\t"
        case .format, .lineSeparator, .paragraphSeparator, .surrogate: false
        default: true
        }
    }
}
