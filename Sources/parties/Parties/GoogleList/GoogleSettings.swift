package import SettingsReading

/// The calls to Google's servers. They are made only where an app is an Android app.
package struct GoogleSettings: Hashable, Sendable, Declared {
    package var statusListURL = "https://android.googleapis.com/attestation/status"
    /// Whatever the answer says.
    package var intervalMin = Duration.seconds(900)
    package var intervalMax = Duration.seconds(21_600)
    /// `roots`: the certificates of a PEM file, instead of the system's; `nil` for the system's.
    package var roots: [UInt8]?
    package var proxy: String?
    /// From the name's look-up to the last byte.
    package var timeout = Duration.seconds(30)

    package init() {}

    package static let keys = Keys<Self> {
        Key("status_list", statusList).means("Google's list of revoked attestation certificates.")
        OutboundKeys.reaching(by: \.proxy)
        Key("timeout", \.timeout, .time(.milliseconds(100) ... .seconds(300)))
            .means("Of a whole call.")
    }

    private static let statusList = Keys<Self> {
        Key("url", \.statusListURL, OutboundKeys.address).means("Where the list is.")
        OutboundKeys.intervals(least: \.intervalMin, most: \.intervalMax, of: "the list")
    }.checked { OutboundKeys.checkIntervals($0, least: $1.intervalMin, most: $1.intervalMax) }
}

extension Stated<GoogleSettings> {
    /// The settings, with the file of the authorities read.
    package func validated(_ files: NamedFiles) -> GoogleSettings {
        var valid = value
        valid.roots = files.roots(reader)
        return valid
    }
}
