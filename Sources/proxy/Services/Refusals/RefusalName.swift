import AppAttest
import HTTPWire

/// By what an operator asks for refusals: a request id, a trace id, or the short name of a key.
package struct RefusalName: Sendable {
    private let text: [UInt8]
    /// The beginning of the short name of a key, at least 4 of its 12 digits.
    private let keyDigits: String?

    /// `nil` for what can be none of them.
    package init?(_ text: [UInt8]) {
        guard RequestID(text.span, 0..<text.count) != nil else { return nil }
        self.text = text
        let isShort = text.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
        }
        let digits = isShort && (4...12).contains(text.count)
        keyDigits = digits ? String(decoding: text, as: UTF8.self) : nil
    }

    func names(_ note: RefusalNote) -> Bool {
        if note.id.equals(text) || note.trace?.equals(text) == true { return true }
        guard let keyDigits, let keyID = note.finding?.keyID else { return false }
        return keyID.logName.hasPrefix(keyDigits)
    }
}
