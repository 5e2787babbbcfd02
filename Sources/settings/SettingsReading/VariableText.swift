import Encodings

/// A text of the configuration with variables of the environment in it.
///
/// `${NAME}` stands for a variable's value, and `$${` for `${`. Variables are put into a text after
/// the file was parsed: a value can't become a key, a list or a second text.
package struct VariableText {
    package enum Piece: Equatable {
        case text(String)
        /// `${NAME}`: its name.
        case variable(String)
        /// What begins like a variable and is none: `${NAME:-default}`, `${`.
        case other(String)
    }

    package let pieces: [Piece]

    package init(_ text: String) {
        var pieces: [Piece] = []
        var plain = ""
        var rest = text[...]
        while let start = rest.firstIndex(of: "$") {
            plain += rest[..<start]
            rest = rest[start...]
            if rest.hasPrefix("$${") {
                plain += "${"
                rest = rest.dropFirst(3)
                continue
            }
            guard rest.hasPrefix("${") else {
                plain += "$"
                rest = rest.dropFirst()
                continue
            }
            if !plain.isEmpty { pieces.append(.text(plain)) }
            plain = ""
            let inner = rest.dropFirst(2).prefix { $0 != "}" }
            let isClosed = inner.endIndex < rest.endIndex
            if isClosed, Self.isName(inner) {
                pieces.append(.variable(String(inner)))
            } else {
                pieces.append(.other("${" + inner + (isClosed ? "}" : "")))
            }
            rest = rest[inner.endIndex...].dropFirst()
        }
        plain += rest
        if !plain.isEmpty { pieces.append(.text(plain)) }
        self.pieces = pieces
    }

    /// The names of its variables, each once, in their order.
    package var names: [String] {
        var names: [String] = []
        for case .variable(let name) in pieces where !names.contains(name) { names.append(name) }
        return names
    }

    /// The first piece that is meant as a variable in a text that takes none. What has a name in
    /// small letters is a text there, such as the path `/a/${x}`.
    package var meant: String? {
        for piece in pieces {
            switch piece {
            case .text: continue
            case .variable(let name): if Self.isUpper(name[...]) { return "${\(name)}" }
            case .other(let text):
                let name = text.dropFirst(2).prefix { $0 != ":" && $0 != "-" && $0 != "}" }
                if text.hasSuffix("}"), Self.isName(name), Self.isUpper(name) { return text }
            }
        }
        return nil
    }

    /// The text with a value for each variable. What is no variable stays as it is written.
    package func text(_ value: (String) -> String) -> String {
        pieces.map { piece in
            switch piece {
            case .text(let text), .other(let text): text
            case .variable(let name): value(name)
            }
        }.joined()
    }

    /// POSIX.1-2017, 8.1: letters, digits and underscores, and no digit first.
    private static func isName(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9") ~= first) else {
            return false
        }
        return text.utf8.allSatisfy { $0.isAlphanumeric || $0 == UInt8(ascii: "_") }
    }

    private static func isUpper(_ name: Substring) -> Bool {
        name.utf8.first.map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 } ?? false
    }
}

/// The variables of the environment, for the texts that take some.
package struct ReadingVariables {
    /// The most bytes of a text with its variables put in.
    package static let bytesMax = 4_096

    /// The value of a variable; `nil` where it is not set.
    package let value: (String) -> String?

    /// Why a variable has no value that can be used.
    package enum Fault: Equatable {
        case unset, empty
        /// A control character, or bytes that are no UTF-8.
        case unprintable

        var found: String {
            switch self {
            case .unset: "which is not set"
            case .empty: "which is set to nothing"
            case .unprintable: "whose value is no line of text"
            }
        }
    }

    package func fault(of name: String) -> Fault? {
        guard let value = value(name) else { return .unset }
        guard !value.isEmpty else { return .empty }
        let isLine = value.unicodeScalars.allSatisfy {
            $0.properties.generalCategory != .control && $0 != "\u{FFFD}"
        }
        return isLine ? nil : .unprintable
    }
}
