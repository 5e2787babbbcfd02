import HTTPWire

/// Readings of a path as ``PathReading`` describes them, worked out in another way: the path is
/// taken apart as text, each step makes a new list of segments, and nothing is left out because it
/// has no effect.
enum ReferenceReadings {
    /// A byte of a path, decoded or as it stands.
    private struct Token {
        let octet: UInt8
        let isEncoded: Bool

        func isSeparator(_ reading: PathReading, encodedToo: Bool) -> Bool {
            switch (octet, isEncoded) {
            case (UInt8(ascii: "/"), false): true
            case (UInt8(ascii: "\\"), false): reading.contains(.splitsAtBackslash)
            case (UInt8(ascii: "/"), true): encodedToo && reading.contains(.splitsAtEncodedSlash)
            case (UInt8(ascii: "\\"), true):
                encodedToo && reading.contains(.splitsAtEncodedBackslash)
            default: false
            }
        }
    }

    /// All readings that consist of these steps.
    static func all(of made: PathReading) -> [PathReading] {
        (0...PathReading.all.rawValue).map { PathReading(rawValue: $0) }
            .filter { $0.isSubset(of: made) && isPossible($0) }
    }

    private static func isPossible(_ reading: PathReading) -> Bool {
        let decoding: [PathReading] = [
            .removesEncodedParameters, .splitsAtEncodedSlash, .splitsAtEncodedBackslash,
        ]
        if reading.contains(.keepsEscapes), decoding.contains(where: reading.contains) {
            return false
        }
        return reading.contains(.removesParameters) || !reading.contains(.removesEncodedParameters)
    }

    /// The path's segments in a reading, one list for each script at which it may end; none when
    /// the reading makes nothing of the path.
    static func segments(of path: String, _ reading: PathReading) -> [[String]] {
        var segments = split(tokens(path, reading), reading)
        if reading.contains(.removesNetworkPath) {
            guard let host = segments.firstIndex(where: { !$0.isEmpty }), host > 0 else {
                return []
            }
            segments.removeFirst(host + 1)
        }
        if reading.contains(.mergesSlashes) {
            let endsEmpty = segments.last?.isEmpty == true
            segments.removeAll(where: \.isEmpty)
            if endsEmpty, !segments.isEmpty { segments.append([]) }
        }
        if reading.contains(.dropsTrailingSlash) {
            while segments.last?.isEmpty == true { segments.removeLast() }
        }
        if segments == [[]] { segments = [] }
        var texts = segments.map { String(decoding: $0, as: UTF8.self) }
        if reading.contains(.foldsCase) { texts = texts.map { $0.lowercased() } }
        guard reading.contains(.cutsPathInfo) else { return [texts] }
        let scripts = texts.indices.filter { place in
            [".php", ".cgi", ".aspx"].contains(where: texts[place].lowercased().hasSuffix)
        }
        return scripts.isEmpty ? [texts] : scripts.map { Array(texts[...$0]) }
    }

    private static func tokens(_ path: String, _ reading: PathReading) -> [Token] {
        var tokens: [Token] = []
        var rest = Array(path.utf8.dropFirst())[...]
        while let octet = rest.popFirst() {
            if octet == UInt8(ascii: "%"), !reading.contains(.keepsEscapes) {
                let digits = String(decoding: rest.prefix(2), as: UTF8.self)
                rest = rest.dropFirst(2)
                tokens.append(Token(octet: UInt8(digits, radix: 16) ?? 0, isEncoded: true))
            } else {
                tokens.append(Token(octet: octet, isEncoded: false))
            }
        }
        return tokens
    }

    private static func split(_ tokens: [Token], _ reading: PathReading) -> [[UInt8]] {
        func parts(_ tokens: some Collection<Token>, encodedToo: Bool) -> [[Token]] {
            tokens.split(omittingEmptySubsequences: false) {
                $0.isSeparator(reading, encodedToo: encodedToo)
            }.map { Array($0) }
        }
        func withoutParameter(_ part: [Token], encodedToo: Bool) -> [Token] {
            Array(
                part.prefix { $0.octet != UInt8(ascii: ";") || $0.isEncoded && !encodedToo }
            )
        }
        guard !tokens.isEmpty else { return [] }
        var all: [[Token]]
        switch (
            reading.contains(.removesParameters), reading.contains(.removesEncodedParameters)
        ) {
        case (false, _): all = parts(tokens, encodedToo: true)
        case (true, false):
            all = parts(tokens, encodedToo: false)
                .map { withoutParameter($0, encodedToo: false) }
                .flatMap { $0.isEmpty ? [[]] : parts($0, encodedToo: true) }
        case (true, true):
            all = parts(tokens, encodedToo: true).map { withoutParameter($0, encodedToo: true) }
        }
        return all.map { $0.map(\.octet) }
    }
}

/// A rule's path, matched by the same slow means.
struct ReferencePattern {
    private let hasRest: Bool
    /// The segments in each reading, by its number.
    private let segments: [[[String]]]

    init(_ text: String) {
        hasRest = text.hasSuffix("/**")
        let start = hasRest ? String(text.dropLast(3)) : text
        segments = (0...PathReading.ofPatterns.rawValue).map {
            ReferenceReadings.segments(of: start, PathReading(rawValue: $0))
        }
    }

    func matches(_ path: [String], _ reading: PathReading) -> Bool {
        segments[Int(reading.intersection(.ofPatterns).rawValue)].contains { pattern in
            guard hasRest ? path.count >= pattern.count : path.count == pattern.count else {
                return false
            }
            return zip(pattern, path).allSatisfy { $0 == "*" ? !$1.isEmpty : $0 == $1 }
        }
    }
}
