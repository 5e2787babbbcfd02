/// The name of a gateway among those that share a database.
///
/// Commands hand it to other programs, such as `ssh`, and print it. So it is read strictly wherever
/// it comes from: 1…64 letters, digits, `-`, `_` and `.`, and no `-` first, which programs would
/// take for an option.
package enum GatewayName {
    private static let countMax = 64

    package static func isValid(_ text: String) -> Bool {
        (1...countMax).contains(text.utf8.count) && text.utf8.first != UInt8(ascii: "-")
            && text.utf8.allSatisfy(isPart)
    }

    /// The name of a gateway on a machine of this name: what no name has is replaced by `_`.
    package static func ofMachine(_ name: String) -> String {
        var bytes = name.utf8.prefix(countMax).map { isPart($0) ? $0 : UInt8(ascii: "_") }
        if bytes.first == UInt8(ascii: "-") { bytes[0] = UInt8(ascii: "_") }
        return bytes.isEmpty ? "gateway" : String(decoding: bytes, as: UTF8.self)
    }

    private static func isPart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-_.".utf8.contains(byte)
        }
    }
}
