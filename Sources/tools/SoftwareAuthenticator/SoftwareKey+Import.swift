internal import AppAttest
internal import ByteCoding
internal import Cryptography

extension SoftwareKey {
    /// The environment that an imported key is said to have.
    public enum ImportEnvironment: String, Hashable, Sendable, CaseIterable {
        /// Attested in Apple's production service.
        case production
        /// Attested in Apple's development service.
        case development
        /// Attested by an authority that an app entry's `test_root` trusts.
        case test
    }

    /// This key as a line of `keys import`, without the line feed:
    ///
    ///     {"key_id": …, "app_id": …, "environment": …, "public_key": …, "counter": …}
    ///
    /// `public_key` is base64 of the X9.62 point of 65 octets, `counter` is the last one.
    public func importLine(as environment: ImportEnvironment) -> String {
        #"{"key_id":"\#(keyID.base64)","app_id":"\#(Self.escaped(device.appID))","#
            + #""environment":"\#(environment.rawValue)","#
            + #""public_key":"\#(Base64.text(publicKey.x963))","counter":\#(counter.rawValue)}"#
    }

    /// RFC 8259 §7: quotation mark, reverse solidus and control characters.
    private static func escaped(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { escaped, scalar in
            switch scalar {
            case "\"", "\\":
                escaped += "\\" + String(scalar)
            case "\u{0}"..<" ":
                let digits = String(scalar.value, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default:
                escaped.unicodeScalars.append(scalar)
            }
        }
    }
}
