/// Appends the fields that tell the origin who the client is; one value a client connection.
///
/// What an untrusted peer says of itself is dropped, what a trusted one says is continued
/// (RFC 7239 §8). The lines that are the same for all requests of a connection are made once.
package struct ProvenanceWriter: Sendable {
    /// The fields of a head that are not believed, or are written anew: to be dropped.
    package let dropped: FieldKindSet
    private let peerIsTrusted: Bool
    private let isSecure: Bool
    private let writesForwarded: Bool
    private let peerText: [UInt8]
    /// X-Forwarded-For and -Proto as they are without a trusted peer's.
    private let ownLines: [UInt8]

    /// `peer` is whom the connection was accepted from; `isSecure` says that it has TLS;
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
        var text: [UInt8] = []
        peer.append(to: &text)
        var lines: [UInt8] = []
        lines.append("X-Forwarded-For: ")
        lines += text
        lines.appendLineEnd()
        lines.append(Self.protocolLine(isSecure))
        ownLines = lines
        if case .v6 = peer {
            // RFC 7239 §6: in brackets and quoted, since a token has no colon.
            peerText = Array("\"[".utf8) + text + Array("]\"".utf8)
        } else {
            peerText = text
        }
        if peerIsTrusted {
            var kinds = FieldKindSet(.xForwardedFor)
            if writesForwarded { kinds.insert(FieldKindSet(.forwarded)) }
            dropped = kinds
        } else {
            dropped = .provenance
        }
    }

    /// Appends the fields.
    ///
    /// A trusted peer's lists are continued, each in one line; its scheme and host stay as it sent
    /// them, so they are written only where it sent none.
    package func write(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        into out: inout [UInt8]
    ) {
        let fields = head.fields
        if peerIsTrusted, !fields.kinds.isDisjoint(with: .provenance) {
            continueLines(fields, octets, into: &out)
        } else {
            out += ownLines
        }
        if !head.authority.isEmpty, !peerIsTrusted || !fields.contains(.xForwardedHost) {
            HeadWriter.field("X-Forwarded-Host", octets, head.authority, into: &out)
        }
        if writesForwarded { forwarded(head, octets, into: &out) }
    }

    private static func protocolLine(_ isSecure: Bool) -> StaticString {
        isSecure ? "X-Forwarded-Proto: https\r\n" : "X-Forwarded-Proto: http\r\n"
    }

    private func continueLines(
        _ fields: FieldSection,
        _ octets: Span<UInt8>,
        into out: inout [UInt8]
    ) {
        out.append("X-Forwarded-For: ")
        append(fields, octets, .xForwardedFor, into: &out)
        // An IPv6 address is neither quoted nor in brackets there.
        out +=
            peerText.first == UInt8(ascii: "\"") ? peerText[2..<peerText.count - 2] : peerText[...]
        out.appendLineEnd()
        if !fields.contains(.xForwardedProto) { out.append(Self.protocolLine(isSecure)) }
    }

    private func forwarded(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        into out: inout [UInt8]
    ) {
        out.append("Forwarded: ")
        if peerIsTrusted { append(head.fields, octets, .forwarded, into: &out) }
        out.append("for=")
        out += peerText
        out.append(isSecure ? ";proto=https" : ";proto=http")
        if !head.authority.isEmpty {
            out.append(";host=\"")
            out.append(octets, head.authority)
            out.append(UInt8(ascii: "\""))
        }
        out.appendLineEnd()
    }

    /// Appends the values of all lines of a kind, a comma after each.
    private func append(
        _ fields: FieldSection,
        _ octets: Span<UInt8>,
        _ kind: FieldKind,
        into out: inout [UInt8]
    ) {
        guard fields.contains(kind) else { return }
        for field in fields.fields where field.kind == kind && !field.value.isEmpty {
            out.append(octets, field.value)
            out.append(", ")
        }
    }
}
