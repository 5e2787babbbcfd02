import Expectations
import HTTPWire
import Testing

/// Which responses a cache that clients share may keep.
@Suite struct CachingTests {
    private func mayBeShared(_ lines: [String], answering method: Method = .get) throws -> Bool {
        let text = "HTTP/1.1 200 OK\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n"
        let bytes = Array(text.utf8)
        return try ResponseHead.reading(text).mayBeShared(bytes.span, answering: method)
    }

    @Test(arguments: [
        ("public", true), ("PUBLIC", true), ("max-age=60", true), ("max-age=0", true),
        ("s-maxage=1", true), ("must-revalidate", true), ("proxy-revalidate", true),
        ("no-transform", true), ("immutable", true), ("max-age=60, public", true),
        ("no-store", false), ("No-Store", false), ("private", false), ("no-cache", true),
        ("private, max-age=60", false), ("max-age=60,private", false),
        ("max-age=0, private, must-revalidate", false),
        ("no-cache, no-store, max-age=0, must-revalidate", false), ("no-cache, private", false),
        // Two answers to one question: the one that shares.
        ("private, public", true), ("no-store, s-maxage=60", true), ("public, no-cache", true),
        // RFC 9111 §5.2.2.3.
        ("must-understand, no-store, max-age=60", true),
        // About some fields alone (RFC 9111 §5.2.2.4, §5.2.2.7).
        (#"private="set-cookie", max-age=60"#, true), (#"no-cache="x, no-store", max-age=5"#, true),
        (#"private = "set-cookie""#, true),
        // What stands in a quoted string is no directive.
        (#"max-age=60, ext="no-store, private""#, true), (#"ext="\", public", private"#, false),
        (#"ext="public, s-maxage=5", no-store"#, false),
        // What can't be read.
        ("private; max-age=60", true), (#"private, ext="no end"#, true), ("private, =5", true),
        ("no-store, @", true), (#"private, ext="end\"#, true),
        // Words that only look alike.
        ("no-stores", true), ("x-private", true),
        ("", false), (" , ,", false),
    ])
    func `Cache-Control decides whether clients share a response`(
        value: String,
        isShared: Bool
    ) throws {
        try expectEqual(mayBeShared(["Cache-Control: \(value)"]), isShared)
        try expectEqual(mayBeShared(["cache-control: \(value)"], answering: .post), isShared)
    }

    @Test func `a 304 goes into a response that is kept`() throws {
        let text = "HTTP/1.1 304 Not Modified\r\nCache-Control: private\r\n\r\n"
        let bytes = Array(text.utf8)
        #expect(try ResponseHead.reading(text).mayBeShared(bytes.span, answering: .get))
    }

    @Test(arguments: [
        (["max-age=60", "private"], false), (["no-store", "max-age=60"], false),
        (["private", "public"], true), (["", "no-store"], false), (["", "max-age=1"], true),
        (["no-store", "\"broken"], true),
    ])
    func `several lines of Cache-Control are one`(values: [String], isShared: Bool) throws {
        try expectEqual(mayBeShared(values.map { "Cache-Control: \($0)" }), isShared)
    }

    @Test(arguments: [
        (["Date: Sun, 06 Nov 1994 08:49:37 GMT", "ETag: \"x\"", "Vary: Accept"], false),
        (["Expires: Thu, 01 Dec 2050 16:00:00 GMT"], true),
        (["Expires: 0"], false), (["Expires: -1"], false), (["Expires: soon"], true),
        (["Expires: 0", "Expires: Thu, 01 Dec 2050 16:00:00 GMT"], true),
        (["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"], true),
        (["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "Expires: 0"], false),
        (["Last-Modified: x", "Cache-Control: no-store"], false),
        (["Expires: Thu, 01 Dec 2050 16:00:00 GMT", "Cache-Control: private"], false),
        (["Expires: Thu, 01 Dec 2050 16:00:00 GMT", "Cache-Control:"], true),
        // A field that Connection names goes no further.
        (["Cache-Control: no-store", "Last-Modified: x", "Connection: cache-control"], true),
        (["Cache-Control: no-store", "X-A: 1", "Connection: x-a"], false),
    ])
    func `without Cache-Control a lifetime is stated, guessed, or not there`(
        lines: [String],
        isShared: Bool
    ) throws {
        try expectEqual(mayBeShared(lines), isShared)
    }

    @Test(arguments: [
        (Method.get, true), (.head, true), (.other, true), (.post, false), (.put, false),
        (.patch, false), (.delete, false), (.options, false),
    ])
    func `no lifetime is guessed for what changes something`(
        method: Method,
        isShared: Bool
    ) throws {
        let lines = ["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"]
        try expectEqual(mayBeShared(lines, answering: method), isShared)
    }

    @Test(arguments: [
        ("CDN-Cache-Control: max-age=600", true), ("CDN-Cache-Control: no-store", false),
        ("Surrogate-Control: max-age=600", true), ("Surrogate-Control: no-store", false),
        ("Cloudflare-CDN-Cache-Control: max-age=600", true),
        ("Cloudflare-CDN-Cache-Control: private", false),
        ("Netlify-CDN-Cache-Control: public", true),
        ("Vercel-CDN-Cache-Control: s-maxage=5", true), ("Akamai-Cache-Control: max-age=5", true),
        ("Edge-Control: !no-store, max-age=1d", true), ("X-Accel-Expires: 600", true),
        ("CDN-Cache-Control:", false), ("X-Cache-Control: public", false),
    ])
    func `a field for certain caches is read beside Cache-Control`(
        line: String,
        isShared: Bool
    ) throws {
        try expectEqual(mayBeShared([line, "Cache-Control: no-store"]), isShared)
        try expectEqual(mayBeShared([line]), isShared)
        #expect(try mayBeShared([line, "Cache-Control: public"]))
    }
}
