package import Encodings

/// The message of a call of Envoy's `envoy.service.auth.v3.Authorization/Check`: the request that
/// Envoy asks about, as ranges into the message.
///
///     CheckRequest      1 attributes
///     AttributeContext  1 source, 4 request
///     Peer              1 address: 1 socket_address: 2 address
///     Request           2 http
///     HttpRequest       2 method, 3 headers, 4 path, 5 host, 6 scheme, 7 query, 8 fragment,
///                       11 body, 12 raw_body, 13 header_map
///     headers           entries of 1 key, 2 value
///     HeaderMap         1 headers: 1 key, 2 value, 3 raw_value
///
/// Other fields are skipped. Of repeated fields the last one counts, messages are merged, and of a
/// map's entries with the same key the last one counts, as the encoding demands. The number of
/// header lines is bounded.
package struct CheckRequest {
    /// Why a message can't be read.
    package enum Fault: Error, Equatable {
        case malformed(ProtobufReader.Fault)
        case tooManyFields
    }

    /// A header line.
    private struct Line {
        var name = 0..<0
        /// `value` and `raw_value`: Envoy sends one of them.
        var text = 0..<0
        var raw = 0..<0
    }

    private var method = 0..<0
    private var path = 0..<0
    private var host = 0..<0
    private var scheme = 0..<0
    /// Envoy leaves both empty: its path has the query.
    private var query = 0..<0
    private var fragment = 0..<0
    /// `headers`: the lines of one name are joined, and bytes that are not UTF-8 are replaced.
    private var joined: [Line] = []
    /// `header_map`: the lines as the client has sent them, with `encode_raw_headers`.
    private var lines: [Line] = []
    /// `body`: with bytes replaced that are not UTF-8.
    private var text = 0..<0
    /// `raw_body`: the content, with `pack_as_bytes`.
    package private(set) var content = 0..<0
    private var sourceText = 0..<0
    private let linesMax: Int

    /// Pseudo-fields, and what proxies add.
    private static let moreLines = 16

    /// Reads a message, which begins at an offset and ends with the bytes.
    package init(_ bytes: Span<UInt8>, from start: Int = 0, _ limits: HeadLimits) throws(Fault) {
        linesMax = limits.fieldsMax + Self.moreLines
        do throws(ProtobufReader.Fault) {
            try readMessage(bytes, from: start)
        } catch {
            throw .malformed(error)
        }
        guard joined.count <= linesMax, lines.count <= linesMax else { throw .tooManyFields }
    }

    private mutating func readMessage(
        _ bytes: Span<UInt8>,
        from start: Int
    ) throws(ProtobufReader.Fault) {
        var message = ProtobufReader(start..<bytes.count)
        while let field = try message.next(bytes) {
            guard case (1, .bytes(let attributes)) = field else { continue }
            var context = ProtobufReader(attributes)
            while let field = try context.next(bytes) {
                switch field {
                case (1, .bytes(let source)): try readSource(bytes, source)
                case (4, .bytes(let request)): try readRequest(bytes, request)
                default: break
                }
            }
        }
    }

    private mutating func readSource(
        _ bytes: Span<UInt8>,
        _ source: Range<Int>
    ) throws(ProtobufReader.Fault) {
        var peer = ProtobufReader(source)
        while let field = try peer.next(bytes) {
            guard case (1, .bytes(let range)) = field else { continue }
            var address = ProtobufReader(range)
            while let field = try address.next(bytes) {
                guard case (1, .bytes(let range)) = field else {
                    // A pipe, or an address within Envoy: the last of these alternatives counts.
                    if case (2...3, _) = field { sourceText = 0..<0 }
                    continue
                }
                var socket = ProtobufReader(range)
                while let field = try socket.next(bytes) {
                    if case (2, .bytes(let text)) = field { sourceText = text }
                }
            }
        }
    }

    private mutating func readRequest(
        _ bytes: Span<UInt8>,
        _ range: Range<Int>
    ) throws(ProtobufReader.Fault) {
        var request = ProtobufReader(range)
        while let field = try request.next(bytes) {
            guard case (2, .bytes(let range)) = field else { continue }
            var http = ProtobufReader(range)
            while let field = try http.next(bytes) {
                guard case .bytes(let value) = field.value else { continue }
                try read(bytes, field: field.number, value: value)
            }
        }
    }

    /// Reads a field of HttpRequest.
    private mutating func read(
        _ bytes: Span<UInt8>,
        field number: UInt64,
        value: Range<Int>
    ) throws(ProtobufReader.Fault) {
        switch number {
        case 2: method = value
        case 3:
            let line = try readLine(bytes, value)
            guard joined.count <= linesMax else { return }
            joined.removeAll { Self.equal(bytes, $0.name, to: line.name) }
            joined.append(line)
        case 4: path = value
        case 5: host = value
        case 6: scheme = value
        case 7: query = value
        case 8: fragment = value
        case 11: text = value
        case 12: content = value
        case 13:
            var map = ProtobufReader(value)
            while let field = try map.next(bytes) {
                guard case (1, .bytes(let header)) = field else { continue }
                let line = try readLine(bytes, header)
                if lines.count <= linesMax { lines.append(line) }
            }
        default: break
        }
    }

    private func readLine(
        _ bytes: Span<UInt8>,
        _ range: Range<Int>
    ) throws(ProtobufReader.Fault) -> Line {
        var line = Line()
        var entry = ProtobufReader(range)
        while let field = try entry.next(bytes) {
            switch field {
            case (1, .bytes(let name)): line.name = name
            case (2, .bytes(let value)): line.text = value
            case (3, .bytes(let value)): line.raw = value
            default: break
            }
        }
        return line
    }
}

extension CheckRequest {
    /// The peer of the connection on which Envoy got the request; `nil` where it is no IP address.
    package func source(_ bytes: Span<UInt8>) -> IPAddress? { IPAddress(bytes, sourceText) }

    /// Writes the head of the request, for the parser that reads all heads, as that of an HTTP/2
    /// request is written.
    ///
    /// The content is that of the message, so it has a length. Fields of Envoy's own connections
    /// are left out, but for those by which an application changes the protocol.
    ///
    /// - Returns: `nil` where the message does not name one request.
    package func head(_ bytes: Span<UInt8>, _ limits: HeadLimits) -> CheckedHead? {
        guard query.isEmpty, fragment.isEmpty, joined.isEmpty || lines.isEmpty,
            content.isEmpty || text.isEmpty
        else { return nil }
        var written = CheckedHead(isWhole: text.isEmpty)
        let length = Array(String(content.count).utf8)
        var builder = RequestHeadBuilder(nonce: 0)
        // Envoy has joined those of HTTP/2, and forwards what is left of HTTP/1.1 as it is.
        builder.joinsCookies = false
        builder.begin()
        for (name, value) in [
            (":method", method), (":scheme", scheme), (":path", path), (":authority", host),
        ] as [(StaticString, Range<Int>)] {
            guard !value.isEmpty else { return nil }
            Self.add(name, bytes.extracting(value), to: &builder, within: limits)
        }
        for line in joined.isEmpty ? lines : joined {
            guard let value = value(of: line) else { return nil }
            guard bytes[line.name.lowerBound] != UInt8(ascii: ":") else {
                guard let own = restated(bytes, line.name), Self.equal(bytes, own, to: value) else {
                    return nil
                }
                if own == path { written.isExact = !lines.isEmpty }
                continue
            }
            switch FieldKind(name: Self.copy(bytes, line.name)) {
            case .contentLength:
                let isStated = Self.copy(bytes, value).elementsEqual(length)
                if !isStated { written.isWhole = false }
            case .connection, .keepAlive, .proxyConnection, .transferEncoding, .te, .trailer,
                .expect:
                break
            default:
                Self.add(
                    bytes.extracting(line.name),
                    bytes.extracting(value),
                    to: &builder,
                    within: limits
                )
            }
        }
        if !content.isEmpty {
            Self.add("content-length", length.span, to: &builder, within: limits)
        }
        let built = builder.end(hasContent: false)
        written.fault = built.fault
        written.bytes = Array(builder.bytes[built.range])
        return written
    }

    /// The value of a line; `nil` where it has no name, or two values.
    private func value(of line: Line) -> Range<Int>? {
        guard !line.name.isEmpty, line.text.isEmpty || line.raw.isEmpty else { return nil }
        return line.raw.isEmpty ? line.text : line.raw
    }

    /// The message's own field that says the same as a pseudo-field.
    private func restated(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Range<Int>? {
        switch String(decoding: Self.copy(bytes, name), as: UTF8.self) {
        case ":method": method
        case ":scheme": scheme
        case ":path": path
        case ":authority": host
        default: nil
        }
    }

    private static func copy(_ bytes: Span<UInt8>, _ range: Range<Int>) -> [UInt8] {
        // The pointer lives for the call only, and the copy is made inside it.
        unsafe bytes.extracting(range).withUnsafeBufferPointer { unsafe Array($0) }
    }

    private static func equal(
        _ bytes: Span<UInt8>,
        _ one: Range<Int>,
        to other: Range<Int>
    ) -> Bool {
        guard one.count == other.count else { return false }
        return zip(one, other).allSatisfy { bytes[$0] == bytes[$1] }
    }

    private static func add(
        _ name: StaticString,
        _ value: Span<UInt8>,
        to builder: inout RequestHeadBuilder,
        within limits: HeadLimits
    ) {
        // Both pointers live for the call only, and the builder copies.
        name.withUTF8Buffer { name in
            unsafe value.withUnsafeBufferPointer { unsafe builder.add(name, $0, within: limits) }
        }
    }

    private static func add(
        _ name: Span<UInt8>,
        _ value: Span<UInt8>,
        to builder: inout RequestHeadBuilder,
        within limits: HeadLimits
    ) {
        // Both pointers live for the call only, and the builder copies.
        unsafe name.withUnsafeBufferPointer { name in
            unsafe value.withUnsafeBufferPointer { unsafe builder.add(name, $0, within: limits) }
        }
    }
}

/// The head of the request that a message of Envoy's names, in HTTP/1.1's form.
package struct CheckedHead {
    /// Empty where there is a fault.
    package fileprivate(set) var bytes: [UInt8] = []
    package fileprivate(set) var fault: Malformed.Reason?
    /// Whether the target and each field line are the client's own bytes.
    package fileprivate(set) var isExact = false
    /// Whether the message's content can be all of the request's content, and is its own bytes.
    package fileprivate(set) var isWhole: Bool
}
