/// The segments that a router or a site leaves of a path: the last step of an interpretation.
struct RoutedPath: Sendable {
    /// The result for the number of a variant.
    enum Variant: Equatable {
        /// There is no variant with this number or a higher one.
        case end
        /// The variant is equal to one with a lower number.
        case repeated
        /// These steps had an effect; the others leave the path as it is.
        case made(PathInterpretation)
    }

    /// The bytes of all segments.
    private(set) var bytes: [UInt8] = []
    /// The end of each segment in ``bytes``.
    private(set) var ends: [UInt32] = []

    /// Makes a variant of a path. There are two for each script that may be the front controller:
    /// without its name, and without all up to it. There are two for each way to end: by a format,
    /// or without an index.
    ///
    /// A pattern keeps what is before the script: as `/orders`, a rule for `/blog/index.php/orders`
    /// would dispute the path of another application.
    ///
    /// `interpretation`: of ``PathInterpretation/routing``; the rest has no effect, but for slashes
    /// at the end. `rest`: `nil` for a path, and for a pattern whether more segments may follow.
    mutating func read(
        _ source: Span<UInt8>,
        _ sourceEnds: Span<UInt32>,
        _ interpretation: PathInterpretation,
        variant: Int,
        rest: Bool? = nil
    ) -> Variant {
        let endings = interpretation.isDisjoint(with: [.dropsIndex, .dropsFormat]) ? 1 : 2
        var done: PathInterpretation = []
        var left = 0..<0
        if interpretation.contains(.dropsScript) {
            let script = Self.script(variant / endings / 2, source, sourceEnds)
            if script >= 0 {
                let dropsFolder = variant / endings % 2 == 1
                if dropsFolder, script == 0 || rest != nil { return .repeated }
                left = (dropsFolder ? 0 : script)..<script + 1
                done.insert(.dropsScript)
            }
        }
        if left.isEmpty, variant >= endings { return .end }
        copy(source, sourceEnds, without: left)
        if rest != true, interpretation.contains(.dropsIndex),
            dropIndex(interpretation, variant % 2 == 1)
        {
            done.insert(.dropsIndex)
        } else if rest != true, interpretation.contains(.dropsFormat),
            dropFormat(isFirst: variant % 2 == 1, isPattern: rest != nil)
        {
            done.insert(.dropsFormat)
        } else if endings == 2, variant % 2 == 1 {
            return .repeated
        }
        return .made(done)
    }

    /// The segment that is the front controller in a variant, or -1.
    ///
    /// Never the last one, so that a pattern for all that one script routes (`/index.php/**`) does
    /// not become one for everything.
    private static func script(_ number: Int, _ bytes: Span<UInt8>, _ ends: Span<UInt32>) -> Int {
        var left = number
        var start = 0
        for index in 0..<max(0, ends.count - 1) {
            let end = Int(ends[index])
            defer { start = end }
            guard ScriptName.isScript(bytes, start..<end) else { continue }
            if left == 0 { return index }
            left -= 1
        }
        return -1
    }

    private mutating func copy(
        _ source: Span<UInt8>,
        _ sourceEnds: Span<UInt32>,
        without left: Range<Int>
    ) {
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        var start = 0
        for index in 0..<sourceEnds.count {
            let end = Int(sourceEnds[index])
            defer { start = end }
            guard !left.contains(index) else { continue }
            bytes.append(source, start..<end)
            ends.append(UInt32(truncatingIfNeeded: bytes.count))
        }
        // A slash and nothing after it is the root.
        if ends.count == 1, ends[0] == 0 { ends.removeLast() }
    }

    private var last: Range<Int> {
        let end = Int(ends.last ?? 0)
        return (ends.count > 1 ? Int(ends[ends.count - 2]) : 0)..<end
    }

    /// Leaves out the index at the end, and the slash before it too, unless that is to stay.
    private mutating func dropIndex(_ interpretation: PathInterpretation, _ keepsSlash: Bool)
        -> Bool
    {
        guard !ends.isEmpty, IndexName.isIndex(bytes.span, last) else { return false }
        let start = UInt32(truncatingIfNeeded: last.lowerBound)
        ends.removeLast()
        if interpretation.contains(.dropsTrailingSlash) {
            while !ends.isEmpty, last.isEmpty { ends.removeLast() }
        } else if keepsSlash, !ends.isEmpty {
            ends.append(start)
        }
        return true
    }

    /// Ends the last segment at its last dot, or at its first one.
    ///
    /// A pattern keeps a script's extension: `/pay.css` is not `/pay.php`.
    private mutating func dropFormat(isFirst: Bool, isPattern: Bool) -> Bool {
        let last = last
        if isPattern, ScriptName.isScript(bytes.span, last) { return false }
        var found: Int?
        for index in last.dropFirst() where bytes[index] == UInt8(ascii: ".") {
            found = index
            if isFirst { break }
        }
        guard let found else { return false }
        ends[ends.count - 1] = UInt32(truncatingIfNeeded: found)
        return true
    }
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
            return ByteScan.equal(bytes, start..<start + 5, "index") ? start + 5 : nil
        case UInt8(ascii: "d"):
            guard segment.count >= 7 else { return nil }
            return ByteScan.equal(bytes, start..<start + 7, "default") ? start + 7 : nil
        default: return nil
        }
    }
}
