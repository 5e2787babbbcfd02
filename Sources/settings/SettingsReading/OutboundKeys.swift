import Rules
import Signatures

/// What the settings of calls to any other party share.
package enum OutboundKeys {
    /// The keys `roots` and `proxy`: whom a call believes, and by whom it goes. The file of `roots`
    /// is read later.
    package static func reaching<Section>(by path: Key<Section>.Path<String?>) -> [Key<Section>] {
        [
            Key("roots", read: .file("a PEM file's path"))
                .means("The authorities that are believed instead of the machine's."),
            Key("proxy", orNone: path, proxy).means("A proxy that takes CONNECT."),
        ]
    }

    private static let proxy = ValueForm<String>.name("http://host:port") { text in
        isAddress(text, scheme: "http://", needsPort: true) ? text : nil
    }

    /// An address of HTTPS.
    package static let address = ValueForm<String>.name("https://host/path", url)

    /// The keys `min_interval` and `max_interval` of what is fetched again and again.
    package static func intervals<Section>(
        least: Key<Section>.Path<Duration>,
        most: Key<Section>.Path<Duration>,
        of what: String
    ) -> [Key<Section>] {
        [
            Key("min_interval", least, .time(.seconds(1) ... .days(1)))
                .means("The shortest time between two requests for \(what)."),
            Key("max_interval", most, .time(.seconds(1) ... .days(7)))
                .means("The longest time between two requests for \(what)."),
        ]
    }

    /// Reports a shortest time that is longer than the longest.
    package static func checkIntervals(_ reader: MappingReader, least: Duration, most: Duration) {
        guard least > most else { return }
        reader.error(
            reader.has("max_interval") ? "max_interval" : "min_interval",
            found: "a shortest time that is longer than the longest",
            use: "min_interval: at most max_interval, which is \(most.settingText)"
        )
    }

    /// The longest address, in bytes.
    private static let urlBytesMax = 1_024

    /// An address of HTTPS, without a fragment; `nil` for any other text.
    package static func url(_ text: String) -> String? {
        let scheme = "https://"
        guard text.hasPrefix(scheme), text.utf8.count <= urlBytesMax,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") })
        else { return nil }
        let host = text.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" }
        let address = scheme + String(host)
        return isAddress(address, scheme: scheme, needsPort: false) ? text : nil
    }

    /// Whether a text is a scheme, a host and perhaps a port.
    package static func isAddress(_ text: String, scheme: String, needsPort: Bool) -> Bool {
        guard text.hasPrefix(scheme) else { return false }
        let rest = String(text.dropFirst(scheme.count))
        if rest.hasPrefix("unix:") { return false }
        if ServerAddress(text: rest, allowsPortZero: false) != nil { return true }
        return !needsPort && ServerAddress(text: rest + ":443", allowsPortZero: false) != nil
    }
}

extension NamedFiles {
    /// The certificates of the file at a section's key `roots`; `nil` where there is none.
    package func roots(_ reader: MappingReader) -> [UInt8]? {
        reader.filePath("roots", use: "a PEM file's path").flatMap { certificates($0) }
    }

    /// Reads a file of authorities.
    package func certificates(_ file: Located<String>) -> [UInt8]? {
        let path = path(of: file)
        let use = "a PEM file with the certificates of authorities"
        do {
            let bytes = try disk.contents(of: path, limit: X509Certificate.pemBytesMax)
            _ = try X509Certificate.certificates(pem: String(decoding: bytes, as: UTF8.self))
            return bytes
        } catch let fault as FileFault {
            guard !log.assumes(file, at: path, fault) else { return nil }
            log.error(file, found: "\(fault.found) (\(path))", use: use)
        } catch {
            log.error(file, found: "no certificate in \(path)", use: use)
        }
        return nil
    }
}
