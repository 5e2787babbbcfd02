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
