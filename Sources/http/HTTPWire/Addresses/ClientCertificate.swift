/// The certificate that a client has shown, as origins and the log get it.
///
/// Made once for a connection, since its line is the same for all requests.
package final class ClientCertificate: Sendable {
    /// A subject of more bytes is left out: it is the client's to choose.
    package static let subjectBytesMax = 1_024

    /// `X-Forwarded-Client-Cert`, as Envoy writes it.
    let line: [UInt8]
    /// The beginning of the fingerprint, for the log.
    package let logName: String

    /// `fingerprint` is the SHA-256 of the certificate; `subject` is in the form of RFC 4514.
    package init(fingerprint: [UInt8], subject: [UInt8]) {
        let hex = fingerprint.map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
        logName = String(hex.prefix(16))
        var line = Array("X-Forwarded-Client-Cert: Hash=\(hex)".utf8)
        if subject.count <= Self.subjectBytesMax {
            line += Array(";Subject=\"".utf8)
            for byte in subject {
                // RFC 9110 §5.6.4. What is no visible character has no place in a field.
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                    line.append(UInt8(ascii: "\\"))
                }
                line.append((0x20...0x7E).contains(byte) ? byte : UInt8(ascii: "?"))
            }
            line.append(UInt8(ascii: "\""))
        }
        line.appendLineEnd()
        self.line = line
    }
}
