/// Writes HTML in which no text can become markup: names are constants, and texts and values of
/// attributes are escaped.
struct HTMLWriter {
    typealias Attributes = KeyValuePairs<StaticString, String>

    private(set) var html = ""

    /// Writes an element and its content.
    mutating func element(
        _ name: StaticString,
        _ attributes: Attributes = [:],
        content: (inout HTMLWriter) -> Void
    ) {
        open(name, attributes)
        content(&self)
        html += "</\(name)>"
    }

    /// Writes an element with a text.
    mutating func element(_ name: StaticString, _ attributes: Attributes = [:], text: String) {
        element(name, attributes) { $0.text(text) }
    }

    /// Writes an element that has no content and no end, such as `meta`.
    mutating func void(_ name: StaticString, _ attributes: Attributes) { open(name, attributes) }

    mutating func text(_ text: String) { html += Self.escaped(text) }

    /// Writes constant text as it is: a declaration, or the content of `style`.
    mutating func constant(_ text: StaticString) { html += "\(text)" }

    private mutating func open(_ name: StaticString, _ attributes: Attributes) {
        html += "<\(name)"
        for (name, value) in attributes { html += " \(name)=\"\(Self.escaped(value))\"" }
        html += ">"
    }

    static func escaped(_ text: String) -> String {
        var escaped = ""
        escaped.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            // HTML has no form for most control characters.
            case "\u{0}"..<" ", "\u{7F}"..<"\u{A0}": escaped += scalar == "\n" ? "\n" : "\u{FFFD}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
