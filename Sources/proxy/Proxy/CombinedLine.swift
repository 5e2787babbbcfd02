import ByteCoding
import ClientStreams
import HTTPWire

/// A line in the combined format of Apache and nginx:
/// `client - - [22/Nov/2026:19:30:12 +0000] "GET /path HTTP/1.1" 200 17 "referer" "agent"`.
struct CombinedLine {
    var client = ""
    /// Milliseconds since 1970.
    var at: Int64 = 0
    var spoken = ClientProtocol.http11
    var method: [UInt8] = []
    var path: [UInt8] = []
    var status = 0
    var bytes: UInt64 = 0
    var referer: [UInt8] = []
    var agent: [UInt8] = []

    func append(to out: inout [UInt8]) {
        out += Array("\(client) - - [".utf8)
        // `Sun, 22 Nov 2026 19:30:12 GMT`: the same parts in another order.
        let date = HTTPDate.octets(unixSeconds: at / 1000)
        out += date[5..<7]
        out.append(UInt8(ascii: "/"))
        out += date[8..<11]
        out.append(UInt8(ascii: "/"))
        out += date[12..<16]
        out.append(UInt8(ascii: ":"))
        out += date[17..<25]
        out += Array(" +0000] \"".utf8)
        if method.isEmpty {
            out.append(UInt8(ascii: "-"))
        } else {
            Self.append(method, to: &out)
            out.append(UInt8(ascii: " "))
            Self.append(path.isEmpty ? [UInt8(ascii: "/")] : path, to: &out)
            out += Array(" \(version)".utf8)
        }
        // Three digits also where nothing was answered: readers of this format take no fewer.
        let code = status == 0 ? "000" : String(status)
        out += Array("\" \(code) \(bytes == 0 ? "-" : String(bytes)) \"".utf8)
        // A query may hold what is not for logs.
        let shown = referer.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        Self.append(shown.isEmpty ? [UInt8(ascii: "-")] : Array(shown), to: &out)
        out += Array("\" \"".utf8)
        Self.append(agent.isEmpty ? [UInt8(ascii: "-")] : agent, to: &out)
        out += Array("\"\n".utf8)
    }

    /// As nginx writes it.
    private var version: String {
        switch spoken {
        case .http10: "HTTP/1.0"
        case .http11: "HTTP/1.1"
        case .http2: "HTTP/2.0"
        }
    }

    /// Escapes as Apache does, so that nothing that a client sends ends a text or a line.
    private static func append(_ bytes: [UInt8], to out: inout [UInt8]) {
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                out.append(UInt8(ascii: "\\"))
                out.append(byte)
            case 0x20...0x7E: out.append(byte)
            default: out += Array("\\x\(Hex.text([byte]))".utf8)
            }
        }
    }
}
