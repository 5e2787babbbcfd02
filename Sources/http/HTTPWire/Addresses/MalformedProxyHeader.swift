/// Why bytes are no header of the PROXY protocol. The raw value is what the log says.
package enum MalformedProxyHeader: String, Error, CaseIterable, Sendable {
    /// They begin as neither version does: the peer sends no header.
    case start = "no-header"
    /// A version other than 2, or a command other than LOCAL and PROXY.
    case version = "version"
    /// A family or a transport that is none of a stream.
    case family = "family"
    /// The line is not built as section 2.1 says.
    case line = "line"
    /// An address that is none of its family, or cut short.
    case address = "address"
    /// A port that is no decimal number up to 65535, or begins with a zero.
    case port = "port"
    /// TLVs that don't fill what is left for them.
    case attachment = "tlv"
    /// A line above 107 bytes, or more than ``ProxyHeader/byteCountMax``.
    case tooLong = "too-long"
}
