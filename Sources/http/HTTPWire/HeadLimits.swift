/// The bounds of what is read, one value for a listener or a pool of origins.
///
/// A head or trailer section beyond a bound is malformed; see ``Malformed/Reason``.
package struct HeadLimits: Sendable, Equatable {
    /// The most bytes from the first of the start line to the blank line.
    ///
    /// Default 16 KiB, allowed 1 KiB…1 MiB. A larger head is answered 431 (RFC 6585 §5).
    /// Others: h11 16 KiB, IIS 16 KiB, Tomcat 8 KiB.
    package var headBytesMax: Int = 16 * 1024

    /// The most bytes of a request target.
    ///
    /// Default 8 KiB, allowed 256…1 MiB. A longer one is answered 414. RFC 9112 §3 recommends 8000.
    package var targetBytesMax: Int = 8 * 1024

    /// The most bytes of a method.
    ///
    /// Default 32, allowed 8…256. The longest registered one has 17 (`UPDATEREDIRECTREF`).
    package var methodBytesMax: Int = 32

    /// The most field lines of a head.
    ///
    /// Default 100, allowed 10…1000. More are answered 431.
    package var fieldsMax: Int = 100

    /// The most bytes of a field name.
    ///
    /// Default 256, allowed 32…1024. A longer one is answered 431; HAProxy took one of 270 bytes
    /// for `Content-Length` once (CVE-2021-40346).
    package var fieldNameBytesMax: Int = 256

    /// The most bytes of a trailer section.
    ///
    /// Default 4 KiB, allowed 0…64 KiB.
    package var trailerBytesMax: Int = 4 * 1024

    /// The most field lines of a trailer section.
    ///
    /// Default 32, allowed 0…100.
    package var trailerFieldsMax: Int = 32

    /// The most bytes of chunk extensions in one message, all chunks together.
    ///
    /// Default 4 KiB, allowed 0…64 KiB. RFC 9112 §7.1.1 asks for a bound on the total.
    package var chunkExtensionBytesMax: Int = 4 * 1024

    package init() {}
}
