/// The gateway's own authentication scheme in an origin's WWW-Authenticate.
///
/// Clients act on a challenge of the scheme `AppAttest`, so only the gateway may send one.
extension FieldSection {
    /// Whether a line names the scheme. Any word counts, even one in a quoted string;
    /// ``HeadWriter`` then reads more closely.
    func namesOwnScheme(_ bytes: Span<UInt8>) -> Bool {
        guard kinds.contains(.wwwAuthenticate) else { return false }
        for field in fields where field.kind == .wwwAuthenticate {
            var index = field.value.lowerBound
            let end = field.value.upperBound
            while index < end {
                let start = index
                while index < end, ByteSet.token.contains(bytes[index]) { index += 1 }
                if Self.isOwnScheme(bytes, start..<index) { return true }
                index += 1
            }
        }
        return false
    }

    /// Appends the lines of WWW-Authenticate without the challenges of the scheme. A line that
    /// can't be read is left out.
    ///
    /// RFC 9110 §11.6.1: WWW-Authenticate is a list of challenges, and a challenge's parameters are
    /// a list too. So an element is either a new challenge or a parameter of the previous one,
    /// which may be in the previous line.
    func appendForeignChallenges(_ bytes: Span<UInt8>, to out: inout [UInt8]) {
        var isOwn = false
        for field in fields where field.kind == .wwwAuthenticate {
            let start = out.count
            var separator: StaticString = "WWW-Authenticate: "
            var list = ListElements(field.value)
            while let element = list.next(bytes) {
                // A scheme is never followed by "=": a space and a parameter follow it.
                if !element.hasValue { isOwn = false }
                if Self.hasOwnScheme(bytes, element.range) { isOwn = true }
                guard !isOwn else { continue }
                out.append(separator)
                out.append(bytes, element.range)
                separator = ", "
            }
            if list.isMalformed {
                out.removeLast(out.count - start)
                // It is unknown which challenge the next line's parameters belong to.
                isOwn = true
            } else if out.count > start {
                out.appendLineEnd()
            }
        }
    }

    /// Whether the scheme is in an element as a word that is no parameter's value. Other words may
    /// precede it, as in `Basic realm="x" AppAttest error="y"`: some readers take each word for a
    /// new scheme.
    private static func hasOwnScheme(_ bytes: Span<UInt8>, _ element: Range<Int>) -> Bool {
        var index = element.lowerBound
        var isValue = false
        while index < element.upperBound {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\"") {
                let quoted = index..<element.upperBound
                index = ListElements.endOfQuoted(bytes, quoted) ?? element.upperBound
                isValue = false
                continue
            }
            let start = index
            while index < element.upperBound, ByteSet.token.contains(bytes[index]) { index += 1 }
            guard index > start else {
                if !ASCIIByte.isBlank(byte) { isValue = byte == UInt8(ascii: "=") }
                index += 1
                continue
            }
            if !isValue, isOwnScheme(bytes, start..<index) { return true }
            isValue = false
        }
        return false
    }

    private static func isOwnScheme(_ bytes: Span<UInt8>, _ word: Range<Int>) -> Bool {
        ByteScan.equal(bytes, word, to: "appattest")
    }
}

extension FieldSection {
    /// Whether If-None-Match names an entity tag (RFC 9110 §13.1.2), compared weakly, or is `*`.
    ///
    /// - tag: with its quotes; no comma or quote between them.
    package func hasMatch(of tag: [UInt8], _ bytes: Span<UInt8>) -> Bool {
        for field in fields where ByteScan.equal(bytes, field.name, to: "if-none-match") {
            if ByteScan.equal(bytes, ByteScan.trimmed(bytes, field.value), to: "*") { return true }
            var place = field.value.lowerBound
            // Tags are quoted strings without escapes (RFC 9110 §8.8.3). The text between them,
            // such as `W/` and commas, has no meaning in a weak comparison.
            while let start = Self.quote(bytes, place..<field.value.upperBound),
                let end = Self.quote(bytes, start + 1..<field.value.upperBound)
            {
                if end - start + 1 == tag.count,
                    tag.indices.allSatisfy({ bytes[start + $0] == tag[$0] })
                {
                    return true
                }
                place = end + 1
            }
        }
        return false
    }

    private static func quote(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int? {
        range.first { bytes[$0] == UInt8(ascii: "\"") }
    }
}

extension FieldSection {
    /// Whether an Accept line names OpenMetrics, and not with the weight 0 (RFC 9110 §12.4.2).
    package func acceptsOpenMetrics(_ bytes: Span<UInt8>) -> Bool {
        for field in fields where ByteScan.equal(bytes, field.name, to: "accept") {
            var start = field.value.lowerBound
            while start < field.value.upperBound {
                var end = start
                while end < field.value.upperBound, bytes[end] != UInt8(ascii: ",") { end += 1 }
                if Self.isOpenMetrics(bytes, ByteScan.trimmed(bytes, start..<end)) { return true }
                start = end + 1
            }
        }
        return false
    }

    private static func isOpenMetrics(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        let name = "application/openmetrics-text" as StaticString
        let end = range.lowerBound + name.utf8CodeUnitCount
        guard range.upperBound >= end, ByteScan.equal(bytes, range.lowerBound..<end, to: name),
            end == range.upperBound || !ByteSet.token.contains(bytes[end])
        else { return false }
        for start in end..<range.upperBound where start + 3 <= range.upperBound {
            guard ByteScan.equal(bytes, start..<start + 3, to: "q=0") else { continue }
            let digits = start + 3..<range.upperBound
            return digits.contains { (0x31...0x39).contains(bytes[$0]) }
        }
        return true
    }
}

extension FieldSection {
    /// Whether the message takes part in authentication of a connection instead of a request: NTLM,
    /// or Negotiate, which may carry it (RFC 4559 §6). All later requests on that connection then
    /// count as that user's, even those of another client.
    package func authenticatesConnection(_ bytes: Span<UInt8>) -> Bool {
        guard !kinds.isDisjoint(with: Self.authenticating) else { return false }
        for field in fields where Self.authenticating.contains(field.kind) {
            if Self.namesConnectionScheme(bytes, field) { return true }
        }
        return false
    }

    private static let authenticating = FieldKindSet([.authorization, .wwwAuthenticate])

    /// In Authorization the scheme is the first word. WWW-Authenticate may list several challenges
    /// with parameters. Any of its words counts, which at worst costs a connection.
    private static func namesConnectionScheme(_ bytes: Span<UInt8>, _ field: Field) -> Bool {
        var index = field.value.lowerBound
        let end = field.value.upperBound
        while index < end {
            let start = index
            while index < end, ByteSet.token.contains(bytes[index]) { index += 1 }
            let word = start..<index
            if ByteScan.equal(bytes, word, to: "ntlm")
                || ByteScan.equal(bytes, word, to: "negotiate")
            {
                return true
            }
            guard field.kind == .wwwAuthenticate else { return false }
            index += 1
        }
        return false
    }
}

extension FieldSection {
    /// Where the first User-Agent line names the build of an app: the `1042` of
    /// `Shop/1042 CFNetwork/1410.0.3 Darwin/22.6.0`, as Apple's URL loading system writes it where
    /// the app says nothing else. Any client can write it.
    package func appBuild(_ bytes: Span<UInt8>) -> Range<Int>? {
        for field in fields where ByteScan.equal(bytes, field.name, to: "user-agent") {
            let value = field.value
            guard let slash = value.first(where: { bytes[$0] == UInt8(ascii: "/") }) else {
                return nil
            }
            let build = slash + 1..<value.upperBound
            guard let space = build.first(where: { bytes[$0] == UInt8(ascii: " ") }) else {
                return nil
            }
            let system = "cfnetwork/" as StaticString
            let end = space + 1 + system.utf8CodeUnitCount
            guard end <= value.upperBound, ByteScan.equal(bytes, space + 1..<end, to: system) else {
                return nil
            }
            return slash + 1..<space
        }
        return nil
    }
}
