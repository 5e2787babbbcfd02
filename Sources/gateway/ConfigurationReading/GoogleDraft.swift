import Rules

/// The section `google` in the file's words.
struct GoogleDraft {
    private(set) var settings = GoogleSettings()
    private let roots: Located<String>?

    init(_ node: SourceNode?, log: ProblemLog) {
        let keys = ["status_list", "roots", "proxy", "timeout"]
        guard let node, let reader = MappingReader(node, "google", keys: keys, log: log) else {
            roots = nil
            return
        }
        roots = reader.value("roots", use: "a PEM file's path") { $0.isEmpty ? nil : $0 }
        settings.proxy =
            reader.value("proxy", use: "http://host:port") { text in
                AppleDraft.isAddress(text, scheme: "http://", needsPort: true) ? text : nil
            }?.value
        if let time = reader.duration("timeout", in: .milliseconds(100)...Duration.seconds(300)) {
            settings.timeout = time.value
        }
        readStatusList(reader)
    }

    private mutating func readStatusList(_ reader: MappingReader) {
        let keys = ["url", "min_interval", "max_interval"]
        guard let node = reader.node("status_list"),
            let inner = MappingReader(node, "google.status_list", keys: keys, log: reader.log)
        else { return }
        if let url = inner.value("url", use: "https://host/path", Self.url) {
            settings.statusListURL = url.value
        }
        let (second, day) = (Duration.seconds(1), Duration.seconds(86_400))
        if let least = inner.duration("min_interval", in: second...day) {
            settings.intervalMin = least.value
        }
        let most = inner.duration("max_interval", in: second...(day * 7))
        if let most { settings.intervalMax = most.value }
        guard settings.intervalMin > settings.intervalMax else { return }
        let place = most?.place ?? inner.place(of: "min_interval")
        reader.log.error(
            place,
            most?.keyPath ?? inner.path("min_interval"),
            found: "a shortest time that is longer than the longest",
            use: "min_interval: at most max_interval, which is "
                + settings.intervalMax.settingText
        )
    }

    /// The longest address, in bytes.
    private static let urlBytesMax = 1_024

    static func url(_ text: String) -> String? {
        let scheme = "https://"
        guard text.hasPrefix(scheme), text.utf8.count <= urlBytesMax,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") })
        else { return nil }
        let host = text.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" }
        let address = scheme + String(host)
        return AppleDraft.isAddress(address, scheme: scheme, needsPort: false) ? text : nil
    }

    /// The settings, with the file of the authorities read.
    func validated(
        folder: String,
        files: some ConfigurationFiles,
        log: ProblemLog
    ) -> GoogleSettings {
        var valid = settings
        if let roots { valid.roots = AppleDraft.certificates(roots, folder, files, log) }
        return valid
    }
}

/// The calls to Google's servers. They are made only where an app is an Android app.
package struct GoogleSettings: Hashable, Sendable {
    /// `status_list.url`: the list of revoked attestation certificates. Default Google's.
    package var statusListURL = "https://android.googleapis.com/attestation/status"
    /// `status_list.min_interval`: the shortest time between two requests for it, whatever the
    /// answer says. Default 15m, 1s…1d.
    package var intervalMin = Duration.seconds(900)
    /// `status_list.max_interval`: the longest one. Default 6h, 1s…7d: a quarter of the default of
    /// an app's `status_max_age`, so that some requests may fail before enrolments are refused.
    package var intervalMax = Duration.seconds(21_600)
    /// `roots`: the certificates of a PEM file, instead of the system's; `nil` for the system's.
    package var roots: [UInt8]?
    /// `proxy`: a proxy that supports CONNECT. Default none.
    package var proxy: String?
    /// `timeout`: of a call, from the name's look-up to the last byte. Default 30s, 100ms…5m.
    package var timeout = Duration.seconds(30)

    package init() {}
}
