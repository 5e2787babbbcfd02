import Glibc

/// Messages for people.
enum StandardError {
    /// Writes a text as it is.
    static func write(_ text: String) {
        let octets = Array(text.utf8)
        // Nobody is left to tell when this fails.
        _ = octets.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
    }

    /// Whether it is a terminal.
    static var isTerminal: Bool { isatty(2) == 1 }
}
