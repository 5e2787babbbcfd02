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
        settings.proxy = OutboundDraft.proxy(reader)
        if let time = reader.duration("timeout", in: .milliseconds(100)...Duration.seconds(300)) {
            settings.timeout = time.value
        }
        readStatusList(reader)
    }

    private mutating func readStatusList(_ reader: MappingReader) {
        let keys = ["url", "min_interval", "max_interval"]
        guard let inner = reader.inner("status_list", keys: keys) else { return }
        if let url = inner.value("url", use: "https://host/path", OutboundDraft.url) {
            settings.statusListURL = url.value
        }
        OutboundDraft.readIntervals(
            inner,
            least: &settings.intervalMin,
            most: &settings.intervalMax
        )
    }

    /// The settings, with the file of the authorities read.
    func validated(_ files: NamedFiles) -> GoogleSettings {
        var valid = settings
        if let roots { valid.roots = files.certificates(roots) }
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
