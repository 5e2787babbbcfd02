/// What servers do to a path before they choose what runs.
///
/// One value is an interpretation: all that one server does. The same type says what an origin may
/// do: then each subset of it is an interpretation that this origin may make. Without any of them a
/// path is read as written: split at each `/` and percent-decoded once.
///
/// The order of the steps is that of the properties in ``spelling``, ``arranging``, PATH_INFO,
/// ``ofRouters``, and the case at last. A server that takes them in another order, or one of them
/// twice, is not described.
package struct PathInterpretation: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The path of the request line, percent-decoded once: it is always looked up.
    package static let asWritten: PathInterpretation = []

    /// Letters of US-ASCII are compared without case: Express, IIS, ASP.NET, case-insensitive file
    /// systems.
    package static let foldsCase = PathInterpretation(rawValue: 1)
    /// What follows a script's name is PATH_INFO (RFC 3875 §4.1.5): `/pay.php/x` runs `/pay.php`.
    /// See ``ScriptName``.
    package static let cutsPathInfo = PathInterpretation(rawValue: 2)
    /// Slashes at the end are dropped: Express, Laravel, Go's ServeMux and others by a redirect.
    package static let dropsTrailingSlash = PathInterpretation(rawValue: 4)
    /// Each segment ends at its first `;` (RFC 3986 §3.3): Tomcat, Jetty, Spring.
    package static let removesParameters = PathInterpretation(rawValue: 8)
    /// Percent-encoding stays: Express, Fastify and Node's own `req.url` match the path undecoded,
    /// so `/v1/%6Frders` is not `/v1/orders` there, but is one of `/v1/:id`.
    package static let keepsEscapes = PathInterpretation(rawValue: 16)
    /// Slashes in a row are one: nginx, Apache, file systems.
    package static let mergesSlashes = PathInterpretation(rawValue: 32)
    /// `//x/v1` is the path `/v1` of the host `x` (RFC 3986 §4.2): Node's `new URL(req.url, base)`,
    /// PHP's `parse_url`, Python's `urlsplit`.
    package static let removesNetworkPath = PathInterpretation(rawValue: 64)
    /// Percent-encoding is decoded before parameters are removed, so `%3B` begins one, and `%2F`
    /// ends one where it splits. Together with ``removesParameters`` only.
    package static let removesEncodedParameters = PathInterpretation(rawValue: 128)
    /// `%2F` splits: software that decodes the whole path first, such as WSGI and CGI servers.
    package static let splitsAtEncodedSlash = PathInterpretation(rawValue: 256)
    /// `%5C` splits: such software on Windows.
    package static let splitsAtEncodedBackslash = PathInterpretation(rawValue: 512)
    /// `\` splits: the WHATWG URL parser, IIS.
    package static let splitsAtBackslash = PathInterpretation(rawValue: 1024)

    /// Punctuation of US-ASCII is `_`: CherryPy, whose `place_order` also runs for `place.order`.
    package static let foldsPunctuation = PathInterpretation(rawValue: 2048)
    /// The last segment ends at a dot: Rails' optional format (`/v1/orders.json`), Spring's suffix
    /// patterns, dots at the end of a name on Windows.
    package static let dropsFormat = PathInterpretation(rawValue: 4096)
    /// The name of a directory's index file at the end stands for the directory: `/pay/index.php`
    /// is `/pay/` and, by a redirect or not, `/pay`. See ``IndexName``.
    package static let dropsIndex = PathInterpretation(rawValue: 8192)
    /// A script's name is a front controller, which routes what follows it: `/index.php/v1/orders`
    /// is `/v1/orders` in Symfony, Laravel, CodeIgniter, WordPress. A folder before it belongs to
    /// the paths that it routes, or to the script: `/public/index.php/v1/orders` is
    /// `/public/v1/orders` or `/v1/orders`.
    package static let dropsScript = PathInterpretation(rawValue: 16384)

    /// The path ends at the first `;`, and what follows is the query: Fastify until version 4
    /// (`useSemicolonDelimiter`), so `/pay;/x` is `/pay`.
    package static let endsAtSemicolon = PathInterpretation(rawValue: 32768)

    /// All of them.
    package static let all = PathInterpretation(rawValue: 65535)
    /// The steps that can change a pattern.
    package static let ofPatterns: PathInterpretation = [
        .foldsCase, .cutsPathInfo, .dropsTrailingSlash, .removesParameters, .keepsEscapes,
        .foldsPunctuation, .dropsFormat, .dropsIndex, .dropsScript,
    ]
    /// The steps that change how bytes are compared; see ``folded(_:)``. It is a constant because a
    /// literal in another module builds the set at each use, with 770 instructions.
    package static let ofBytes: PathInterpretation = [.foldsCase, .foldsPunctuation]
    /// The steps of routers and sites, on top of those of servers. Many applications have paths of
    /// their own of these forms, so such an interpretation matters only where it leads to a
    /// stricter rule.
    package static let ofRouters: PathInterpretation = [
        .foldsPunctuation, .dropsFormat, .dropsIndex, .dropsScript,
    ]
    /// The steps of ``ofRouters`` that leave out a part of the path.
    package static let routing: PathInterpretation = [.dropsFormat, .dropsIndex, .dropsScript]
    /// The steps that change where segments begin and end, and their bytes.
    package static let spelling: PathInterpretation = [
        .splitsAtEncodedSlash, .splitsAtEncodedBackslash, .splitsAtBackslash, .keepsEscapes,
        .removesParameters, .removesEncodedParameters, .endsAtSemicolon,
    ]
    /// The steps that leave out segments: network path, slashes in a row, slashes at the end.
    package static let arranging: PathInterpretation = [
        .removesNetworkPath, .mergesSlashes, .dropsTrailingSlash,
    ]

    /// A byte of a segment, as this interpretation compares it.
    @inline(__always)
    package func folded(_ byte: UInt8) -> UInt8 {
        let byte = contains(.foldsCase) ? ByteScan.folded(byte) : byte
        return contains(.foldsPunctuation) ? ByteScan.withoutPunctuation(byte) : byte
    }

    /// The subset of these steps that follows this one; the empty one follows the last.
    package func next(in steps: PathInterpretation) -> PathInterpretation {
        PathInterpretation(rawValue: (rawValue &- steps.rawValue) & steps.rawValue)
    }

    /// The steps, one at a time.
    package var each: [PathInterpretation] {
        (0..<UInt16(Self.all.rawValue.nonzeroBitCount)).map {
            PathInterpretation(rawValue: 1 << $0)
        }
        .filter(isSuperset)
    }

    /// Whether some server may take these steps together.
    ///
    /// It bounds the number of interpretations: a router's steps combine only with those of the
    /// servers below it.
    package var goesTogether: Bool {
        if contains(.keepsEscapes), !isDisjoint(with: Self.notUndecoded) { return false }
        if contains(.dropsScript), contains(.cutsPathInfo) { return false }
        if contains(.dropsFormat), !isDisjoint(with: Self.notFormat) { return false }
        if contains(.foldsPunctuation), !isSubset(of: Self.ofPunctuation) { return false }
        if contains(.endsAtSemicolon), !isSubset(of: Self.ofSemicolon) { return false }
        return contains(.removesParameters) || !contains(.removesEncodedParameters)
    }

    private static let notUndecoded: PathInterpretation = [
        .removesEncodedParameters, .splitsAtEncodedSlash, .splitsAtEncodedBackslash,
        .foldsPunctuation, .dropsFormat, .dropsIndex, .dropsScript,
    ]
    private static let notFormat: PathInterpretation = [.cutsPathInfo, .dropsIndex]
    private static let ofSemicolon: PathInterpretation = [
        .endsAtSemicolon, .foldsCase, .mergesSlashes, .dropsTrailingSlash, .keepsEscapes,
    ]
    private static let ofPunctuation: PathInterpretation = [
        .foldsPunctuation, .dropsIndex, .mergesSlashes, .dropsTrailingSlash, .removesNetworkPath,
        .splitsAtEncodedSlash,
    ]
}

/// The parts of a path that two readers may read in two ways.
///
/// ``TargetView`` finds them; a rule may allow those in ``allowable``.
package struct PathConstructs: OptionSet, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// `%2F`: some servers decode it before they split the path.
    package static let encodedSlash = PathConstructs(rawValue: 1)
    /// `%5C`: some servers decode it and take it for a slash.
    package static let encodedBackslash = PathConstructs(rawValue: 2)
    /// `\`: some servers take it for a slash.
    package static let backslash = PathConstructs(rawValue: 4)
    /// Bytes that are no UTF-8 once decoded, among them overlong forms of `/` and `.`.
    package static let invalidEncoding = PathConstructs(rawValue: 8)

    /// What a rule can allow.
    package static let allowable: PathConstructs = [
        .encodedSlash, .encodedBackslash, .backslash, .invalidEncoding,
    ]

    /// `%` without two hexadecimal digits. Never allowed.
    package static let brokenEscape = PathConstructs(rawValue: 16)
    /// `%00`…`%1F`, `%7F`. Never allowed.
    package static let encodedControl = PathConstructs(rawValue: 32)
    /// `.` or `..` as a segment, plain or encoded, with a path parameter (`..;x`) or not, between
    /// slashes of any kind. Never allowed.
    package static let dotSegment = PathConstructs(rawValue: 64)

    /// Two slashes in a row. Not malformed, but see ``PathInterpretation``; as all below.
    package static let emptySegment = PathConstructs(rawValue: 128)
    /// A semicolon.
    package static let pathParameter = PathConstructs(rawValue: 256)
    /// A slash at the end of a path that has segments.
    package static let trailingSlash = PathConstructs(rawValue: 512)
    /// A percent-encoding, of whatever byte.
    package static let escape = PathConstructs(rawValue: 1024)
    /// `%3B`.
    package static let encodedParameter = PathConstructs(rawValue: 2048)

    /// Parts that are no fault, although servers read them in more than one way.
    package static let readingDependent: PathConstructs = [
        .emptySegment, .pathParameter, .trailingSlash, .escape, .encodedParameter,
    ]

    /// Parts of a path that make other segments of it in another interpretation.
    package static let unplain = readingDependent.union([.backslash, .encodedSlash])
        .union(.encodedBackslash)
}

/// Names of files after which servers take the rest of a path for PATH_INFO.
///
/// The list has what runs as CGI, FastCGI or an ISAPI extension in the configurations that servers
/// ship or document: PHP (Apache's `SetHandler`, nginx's `fastcgi_split_path_info`), Apache's
/// `AddHandler cgi-script` and `wsgi-script`, lighttpd's `cgi.assign`, and the handlers of IIS and
/// ColdFusion. `.jsp` and `.do` are not in it: an extension mapping of a servlet container is about
/// the last segment only (Servlet 6.0 §12.2).
enum ScriptName {
    /// The most letters after the dot.
    private static let lettersMax = 5

    private static let codes: Set<UInt64> = Set(
        [
            "php", "php3", "php4", "php5", "php7", "php8", "phtml", "pht", "phar", "cgi", "fcgi",
            "pl", "py", "rb", "erb", "sh", "wsgi", "asp", "aspx", "ashx", "asmx", "svc", "dll",
            "exe", "cfm", "cfc",
        ].map { $0.utf8.reduce(0) { $0 &<< 8 | UInt64($1) } }
    )

    /// Whether a segment ends in one of the extensions. Without case, as handlers compare them.
    static func isScript(_ bytes: Span<UInt8>, _ segment: Range<Int>) -> Bool {
        var index = segment.upperBound
        var code: UInt64 = 0
        var shift: UInt64 = 0
        while index > segment.lowerBound, segment.upperBound - index <= lettersMax {
            index -= 1
            let byte = bytes[index]
            if byte == UInt8(ascii: ".") { return codes.contains(code) }
            code |= UInt64(ByteScan.folded(byte)) &<< shift
            shift += 8
        }
        return false
    }
}

/// Names under which servers serve a directory itself.
///
/// `index` with any extension or none, and `default` with any: PHP, Apache, nginx (`index`), Tomcat
/// (`welcome-file`), IIS (`default document`), and the default action of CodeIgniter, CherryPy and
/// ASP.NET MVC.
enum IndexName {
    /// Whether a segment is one of them. Without case.
    static func isIndex(_ bytes: Span<UInt8>, _ segment: Range<Int>) -> Bool {
        guard let end = stemEnd(bytes, segment) else { return false }
        if end == segment.upperBound { return segment.count == 5 }
        return bytes[end] == UInt8(ascii: ".")
    }

    /// Whether a segment begins like one of them, and so may be one in another interpretation.
    static func isLikely(_ bytes: Span<UInt8>, _ segment: Range<Int>) -> Bool {
        stemEnd(bytes, segment) != nil
    }

    /// Where the name ends that the segment begins with.
    private static func stemEnd(_ bytes: Span<UInt8>, _ segment: Range<Int>) -> Int? {
        guard segment.count >= 5 else { return nil }
        let start = segment.lowerBound
        switch ByteScan.folded(bytes[start]) {
        case UInt8(ascii: "i"):
            return ByteScan.equal(bytes, start..<start + 5, to: "index") ? start + 5 : nil
        case UInt8(ascii: "d"):
            guard segment.count >= 7 else { return nil }
            return ByteScan.equal(bytes, start..<start + 7, to: "default") ? start + 7 : nil
        default: return nil
        }
    }
}
