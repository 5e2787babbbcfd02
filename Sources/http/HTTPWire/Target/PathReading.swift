/// What servers do to a path before they choose what runs.
///
/// One value is a reading: all that one server does. The same type says what an origin may do: then
/// each subset of it is a reading that this origin may make. Without any of them a path is read as
/// written: split at each `/` and percent-decoded once.
///
/// The order of the steps is that of the properties in ``spelling``, ``arranging``, and the case at
/// last. A server that takes them in another order, or one of them twice, is not described.
package struct PathReading: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// As the request line has it, percent-decoded once: what is always looked up.
    package static let asWritten: PathReading = []

    // The first five bits are those that make another pattern of a pattern too; see `ofPatterns`.

    /// Letters of US-ASCII are compared without case: Express, IIS, ASP.NET, case-insensitive file
    /// systems.
    package static let foldsCase = PathReading(rawValue: 1)
    /// What follows a script's name is PATH_INFO (RFC 3875 §4.1.5): `/pay.php/x` runs `/pay.php`.
    /// See ``ScriptName``.
    package static let cutsPathInfo = PathReading(rawValue: 2)
    /// Slashes at the end are dropped: Express, Laravel, Go's ServeMux and others by a redirect.
    package static let dropsTrailingSlash = PathReading(rawValue: 4)
    /// Each segment ends at its first `;` (RFC 3986 §3.3): Tomcat, Jetty, Spring.
    package static let removesParameters = PathReading(rawValue: 8)
    /// Percent-encoding stays: Express, Fastify and Node's own `req.url` match the path undecoded,
    /// so `/v1/%6Frders` is not `/v1/orders` there, but is one of `/v1/:id`.
    package static let keepsEscapes = PathReading(rawValue: 16)
    /// Slashes in a row are one: nginx, Apache, file systems.
    package static let mergesSlashes = PathReading(rawValue: 32)
    /// `//x/v1` is the path `/v1` of the host `x` (RFC 3986 §4.2): Node's `new URL(req.url, base)`,
    /// PHP's `parse_url`, Python's `urlsplit`.
    package static let removesNetworkPath = PathReading(rawValue: 64)
    /// Percent-encoding is decoded before parameters are removed, so `%3B` begins one, and `%2F`
    /// ends one where it splits. Together with ``removesParameters`` only.
    package static let removesEncodedParameters = PathReading(rawValue: 128)
    /// `%2F` splits: whatever decodes the whole path first, such as WSGI and CGI servers.
    package static let splitsAtEncodedSlash = PathReading(rawValue: 256)
    /// `%5C` splits: the same on Windows.
    package static let splitsAtEncodedBackslash = PathReading(rawValue: 512)
    /// `\` splits: the WHATWG URL parser, IIS.
    package static let splitsAtBackslash = PathReading(rawValue: 1024)

    /// All of them.
    package static let all = PathReading(rawValue: 2047)
    /// Those that a pattern can be changed by. They number the spellings of a pattern.
    package static let ofPatterns = PathReading(rawValue: 31)
    /// Those that change where segments begin and end, and what bytes they have.
    package static let spelling: PathReading = [
        .splitsAtEncodedSlash, .splitsAtEncodedBackslash, .splitsAtBackslash, .keepsEscapes,
        .removesParameters, .removesEncodedParameters,
    ]
    /// Those that leave out segments: network path, slashes in a row, slashes at the end.
    package static let arranging: PathReading = [
        .removesNetworkPath, .mergesSlashes, .dropsTrailingSlash,
    ]

    /// The place of the reading in a mask of pattern spellings, as a mask with this bit.
    package var spellingBit: UInt32 { 1 &<< UInt32(rawValue & Self.ofPatterns.rawValue) }
}
