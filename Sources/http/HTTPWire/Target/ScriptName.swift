/// Names of files behind which servers take the rest of a path for PATH_INFO.
///
/// The list has what runs as CGI, FastCGI or an ISAPI extension in the configurations that servers
/// ship or document: PHP (Apache's `SetHandler`, nginx's `fastcgi_split_path_info`), Apache's
/// `AddHandler cgi-script` and `wsgi-script`, lighttpd's `cgi.assign`, and the handlers of IIS and
/// ColdFusion. `.jsp` and `.do` are not in it: an extension mapping of a servlet container is about
/// the last segment only (Servlet 6.0 §12.2).
enum ScriptName {
    /// The most letters behind the dot.
    private static let lettersMax = 5

    private static let codes: Set<UInt64> = Set(
        [
            "php", "php3", "php4", "php5", "php7", "php8", "phtml", "pht", "phar", "cgi", "fcgi",
            "pl", "py", "rb", "erb", "sh", "wsgi", "asp", "aspx", "ashx", "asmx", "svc", "dll",
            "exe", "cfm", "cfc",
        ].map { $0.utf8.reduce(0) { $0 &<< 8 | UInt64($1) } }
    )

    /// Whether a segment ends in one of the extensions. Without case, as handlers compare them.
    static func isScript(_ octets: Span<UInt8>, _ segment: Range<Int>) -> Bool {
        var index = segment.upperBound
        var code: UInt64 = 0
        var shift: UInt64 = 0
        while index > segment.lowerBound, segment.upperBound - index <= lettersMax {
            index -= 1
            let octet = octets[index]
            if octet == UInt8(ascii: ".") { return codes.contains(code) }
            code |= UInt64(OctetScan.folded(octet)) &<< shift
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
    static func isIndex(_ octets: Span<UInt8>, _ segment: Range<Int>) -> Bool {
        guard let end = stemEnd(octets, segment) else { return false }
        if end == segment.upperBound { return segment.count == 5 }
        return octets[end] == UInt8(ascii: ".")
    }

    /// Whether a segment begins like one of them, and so may be one in another reading.
    static func isLikely(_ octets: Span<UInt8>, _ segment: Range<Int>) -> Bool {
        stemEnd(octets, segment) != nil
    }

    /// Where the name ends that the segment begins with.
    private static func stemEnd(_ octets: Span<UInt8>, _ segment: Range<Int>) -> Int? {
        guard segment.count >= 5 else { return nil }
        let start = segment.lowerBound
        switch OctetScan.folded(octets[start]) {
        case UInt8(ascii: "i"):
            return OctetScan.equal(octets, start..<start + 5, "index") ? start + 5 : nil
        case UInt8(ascii: "d"):
            guard segment.count >= 7 else { return nil }
            return OctetScan.equal(octets, start..<start + 7, "default") ? start + 7 : nil
        default: return nil
        }
    }
}
