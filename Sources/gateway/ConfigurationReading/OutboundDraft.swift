import OutboundCalls
import Rules
import Signatures

/// What the settings of calls to any other party share.
enum OutboundDraft {
    /// Reads `proxy`: a proxy that supports CONNECT.
    static func proxy(_ reader: MappingReader) -> String? {
        reader.value("proxy", use: "http://host:port") { text in
            isAddress(text, scheme: "http://", needsPort: true) ? text : nil
        }?.value
    }

    /// Reads `min_interval` and `max_interval` of what is fetched again and again: 1s…1d, 1s…7d.
    /// They are left as they are where the file does not say them.
    static func readIntervals(
        _ reader: MappingReader,
        least: inout Duration,
        most: inout Duration
    ) {
        let (second, day) = (Duration.seconds(1), Duration.seconds(86_400))
        let statedLeast = reader.duration("min_interval", in: second...day)
        let statedMost = reader.duration("max_interval", in: second...(day * 7))
        if let statedLeast { least = statedLeast.value }
        if let statedMost { most = statedMost.value }
        guard least > most, let stated = statedMost ?? statedLeast else { return }
        reader.log.error(
            stated,
            found: "a shortest time that is longer than the longest",
            use: "min_interval: at most max_interval, which is \(most.settingText)"
        )
    }

    /// The longest address, in bytes.
    private static let urlBytesMax = 1_024

    /// An address of HTTPS, without a fragment; `nil` for any other text.
    static func url(_ text: String) -> String? {
        let scheme = "https://"
        guard text.hasPrefix(scheme), text.utf8.count <= urlBytesMax,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") })
        else { return nil }
        let host = text.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" }
        let address = scheme + String(host)
        return isAddress(address, scheme: scheme, needsPort: false) ? text : nil
    }

    /// Whether a text is a scheme, a host and perhaps a port.
    static func isAddress(_ text: String, scheme: String, needsPort: Bool) -> Bool {
        guard text.hasPrefix(scheme) else { return false }
        let rest = String(text.dropFirst(scheme.count))
        if rest.hasPrefix("unix:") { return false }
        if ServerAddress(text: rest, allowsPortZero: false) != nil { return true }
        return !needsPort && ServerAddress(text: rest + ":443", allowsPortZero: false) != nil
    }
}

extension NamedFiles {
    /// Reads a file of authorities.
    func certificates(_ file: Located<String>) -> [UInt8]? {
        let path = path(of: file)
        let use = "a PEM file with the certificates of authorities"
        do {
            let bytes = try disk.contents(of: path, limit: X509Certificate.pemBytesMax)
            _ = try X509Certificate.certificates(pem: String(decoding: bytes, as: UTF8.self))
            return bytes
        } catch let fault as FileFault {
            log.error(file, found: "\(fault.found) (\(path))", use: use)
        } catch {
            log.error(file, found: "no certificate in \(path)", use: use)
        }
        return nil
    }
}

extension TokenCallSettings {
    private static let rows: [SettingRow<Self>] = [
        SettingRow("timeout", .time(\.timeout, .milliseconds(100) ... .seconds(30))),
        SettingRow("concurrent", .count(\.concurrent, 1...64)),
        SettingRow("queue", .count(\.queue, 1...100_000)),
        SettingRow("rate", .perSecond(\.perSecond, of: "calls in a second", max: 1_000)),
    ]

    /// The limits of the calls about tokens.
    init(_ reader: MappingReader) {
        self.init()
        for row in Self.rows { row.read(reader, into: &self) }
    }
}
