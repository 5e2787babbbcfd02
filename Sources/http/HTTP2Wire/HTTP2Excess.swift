/// Which limit a client's connection has exceeded. It is ended with ENHANCE_YOUR_CALM. The raw
/// value is the log's word: add, do not rename.
package enum HTTP2Excess: String, CaseIterable, Error, Sendable {
    /// A head in too many CONTINUATION frames (CVE-2024-27316 and others).
    case continuations = "http2-continuations"
    /// The bytes of a head, compressed or not, or those of several heads, are far more than is
    /// allowed.
    case headerList = "http2-header-list"
    /// Rapid reset (CVE-2023-44487).
    case resets = "http2-resets"
    /// Streams that ended by the client's errors; MadeYouReset (CVE-2025-8671).
    case provokedResets = "http2-provoked-resets"
    /// CVE-2019-9512.
    case pings = "http2-pings"
    /// CVE-2019-9515.
    case settings = "http2-settings"
    /// CVE-2019-9518.
    case emptyFrames = "http2-empty-frames"
    /// Windows that open in tiny steps (CVE-2019-9511).
    case windowUpdates = "http2-window-updates"
    /// CVE-2019-9513.
    case otherFrames = "http2-other-frames"
}
