/// Appends the fields that name the client to the origin. One value for each client connection.
///
/// The fields of an untrusted peer are dropped. The trustworthy part of a trusted peer's fields is
/// written again (RFC 7239 §8). So the first address that an origin reads is the client's as the
/// gateway knows it, the last one is the peer's, and no part was written by the client. Lines that
/// are equal for all requests of a connection are made once. It is not copied: each request uses it
/// where it is.
package struct ProvenanceWriter: ~Copyable, Sendable {
    /// Whether the gateway believes what the peer says of its clients.
    package let peerIsTrusted: Bool
    /// The certificate that the peer has shown.
    package var certificate: ClientCertificate?
    private let isSecure: Bool
    private let writesForwarded: Bool
    /// X-Forwarded-For and -Proto as they are without a trusted peer's lines.
    private let ownLines: [UInt8]
    /// The peer's address in ``ownLines``.
    private let peerText: Range<Int>
    private let peerIsV6: Bool

    /// `peer` is the address that the connection came from; `isSecure` says that it has TLS;
    /// `writesForwarded` adds RFC 7239's Forwarded to X-Forwarded-For, -Proto and -Host.
    package init(
        peer: IPAddress,
        peerIsTrusted: Bool,
        isSecure: Bool,
        writesForwarded: Bool = false
    ) {
        self.peerIsTrusted = peerIsTrusted
        self.isSecure = isSecure
        self.writesForwarded = writesForwarded
        var lines: [UInt8] = []
        // Both lines with the longest address.
        lines.reserveCapacity(88)
        lines.append("X-Forwarded-For: ")
        let start = lines.count
        peer.append(to: &lines)
        peerText = start..<lines.count
        lines.appendLineEnd()
        lines.append(Self.protocolLine(isSecure))
        ownLines = lines
        peerIsV6 = if case .v6 = peer { true } else { false }
    }

    /// Appends the fields. The client's own copies are to be dropped: ``FieldKindSet/provenance``.
    ///
    /// - `address`: the client's address, for a trusted peer; unused for any other peer.
    /// - `keepsHost`: the peer's X-Forwarded-Host stays, so none is written beside it.
    package func write(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        from address: ClientAddress,
        keepsHost: Bool = false,
        into out: inout [UInt8]
    ) {
        if peerIsTrusted {
            believedLines(head.fields, bytes, from: address, into: &out)
        } else {
            out += ownLines
        }
        // The host by which the rule was chosen: a proxy that sets no X-Forwarded-Host passes on
        // the client's.
        if !head.authority.isEmpty, !keepsHost {
            HeadWriter.field("X-Forwarded-Host", bytes, at: head.authority, into: &out)
        }
        if writesForwarded { forwarded(head, bytes, from: address, into: &out) }
        if let certificate { out += certificate.line }
    }

    private static func protocolLine(_ isSecure: Bool) -> StaticString {
        isSecure ? "X-Forwarded-Proto: https\r\n" : "X-Forwarded-Proto: http\r\n"
    }

    /// X-Forwarded-For with all addresses that are believed, the client's first; and the scheme
    /// that the peer saw.
    private func believedLines(
        _ fields: FieldSection,
        _ bytes: Span<UInt8>,
        from address: ClientAddress,
        into out: inout [UInt8]
    ) {
        out.append("X-Forwarded-For: ")
        for index in address.hops.indices.reversed() {
            address.hops[index].append(to: &out)
            if index > 0 { out.append(", ") }
        }
        out.appendLineEnd()
        guard let scheme = Self.scheme(fields, bytes) else {
            return out.append(Self.protocolLine(isSecure))
        }
        HeadWriter.field("X-Forwarded-Proto", bytes, at: scheme, into: &out)
    }

    /// The last scheme that X-Forwarded-Proto names: the nearest proxy's.
    private static func scheme(_ fields: FieldSection, _ bytes: Span<UInt8>) -> Range<Int>? {
        guard fields.contains(.xForwardedProto),
            let field = fields.fields.last(where: { $0.kind == .xForwardedProto })
        else { return nil }
        var start = field.value.upperBound
        while start > field.value.lowerBound, bytes[start - 1] != UInt8(ascii: ",") { start -= 1 }
        let scheme = ByteScan.trimmed(bytes, start..<field.value.upperBound)
        let isKnown =
            ByteScan.equal(bytes, scheme, to: "https") || ByteScan.equal(bytes, scheme, to: "http")
            || ByteScan.equal(bytes, scheme, to: "wss") || ByteScan.equal(bytes, scheme, to: "ws")
        return isKnown ? scheme : nil
    }

    private func forwarded(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        from address: ClientAddress,
        into out: inout [UInt8]
    ) {
        out.append("Forwarded: ")
        if peerIsTrusted, let first = address.firstEntry {
            believed(head.fields, bytes, from: first, into: &out)
        }
        out.append("for=")
        // RFC 7239 §6: in brackets and quoted, since a token has no colon.
        if peerIsV6 { out.append("\"[") }
        out.append(ownLines.span, peerText)
        if peerIsV6 { out.append("]\"") }
        out.append(isSecure ? ";proto=https" : ";proto=http")
        if !head.authority.isEmpty {
            out.append(";host=\"")
            out.append(bytes, head.authority)
            out.append(UInt8(ascii: "\""))
        }
        out.appendLineEnd()
    }

    /// Appends the elements of Forwarded from the first one that is believed, with a comma after
    /// each line's elements.
    private func believed(
        _ fields: FieldSection,
        _ bytes: Span<UInt8>,
        from first: Int,
        into out: inout [UInt8]
    ) {
        for field in fields.fields where field.kind == .forwarded {
            guard field.value.upperBound > first else { continue }
            let start = max(field.value.lowerBound, first)
            out.append(bytes, ByteScan.trimmed(bytes, start..<field.value.upperBound))
            out.append(", ")
        }
    }
}
