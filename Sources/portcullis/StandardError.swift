import Glibc

/// Messages for people.
enum StandardError {
    /// Writes a text and ends the line.
    static func write(_ text: String) {
        let octets = Array((text.hasSuffix("\n") ? text : text + "\n").utf8)
        // Nobody is left to tell when this fails.
        _ = octets.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
    }
}
