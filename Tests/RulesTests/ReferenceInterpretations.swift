import HTTPWire

/// Readings of a path as ``PathInterpretation`` describes them, worked out in another way: the path
/// is taken apart as text, each step makes a new list of segments, and nothing is left out because
/// it has no effect.
enum ReferenceInterpretations {
    /// A byte of a path, decoded or as it stands.
    private struct Token {
        let byte: UInt8
        let isEncoded: Bool

        func isSeparator(_ interpretation: PathInterpretation, encodedToo: Bool) -> Bool {
            switch (byte, isEncoded) {
            case (UInt8(ascii: "/"), false): true
            case (UInt8(ascii: "\\"), false): interpretation.contains(.splitsAtBackslash)
            case (UInt8(ascii: "/"), true):
                encodedToo && interpretation.contains(.splitsAtEncodedSlash)
            case (UInt8(ascii: "\\"), true):
                encodedToo && interpretation.contains(.splitsAtEncodedBackslash)
            default: false
            }
        }
    }

    /// All interpretations that consist of these steps.
    static func all(of made: PathInterpretation) -> [PathInterpretation] {
        possible.filter { $0 & ~made.rawValue == 0 }.map { PathInterpretation(rawValue: $0) }
    }

    private static let possible = (0...PathInterpretation.all.rawValue).filter {
        isPossible(PathInterpretation(rawValue: $0))
    }

    private static func isPossible(_ interpretation: PathInterpretation) -> Bool {
        let decoding: [PathInterpretation] = [
            .removesEncodedParameters, .splitsAtEncodedSlash, .splitsAtEncodedBackslash,
        ]
        if interpretation.contains(.keepsEscapes), decoding.contains(where: interpretation.contains)
        {
            return false
        }
        let routing: [PathInterpretation] = [
            .dropsIndex, .dropsFormat, .dropsScript, .foldsPunctuation,
        ]
        if interpretation.contains(.keepsEscapes), routing.contains(where: interpretation.contains)
        {
            return false
        }
        if interpretation.contains(.dropsScript), interpretation.contains(.cutsPathInfo) {
            return false
        }
        if interpretation.contains(.dropsFormat),
            !interpretation.isDisjoint(with: [.cutsPathInfo, .dropsIndex])
        {
            return false
        }
        let semicolon: PathInterpretation = [
            .endsAtSemicolon, .foldsCase, .mergesSlashes, .dropsTrailingSlash, .keepsEscapes,
        ]
        if interpretation.contains(.endsAtSemicolon), !interpretation.isSubset(of: semicolon) {
            return false
        }
        let beside: PathInterpretation = [
            .foldsPunctuation, .dropsIndex, .mergesSlashes, .dropsTrailingSlash,
            .removesNetworkPath, .splitsAtEncodedSlash,
        ]
        if interpretation.contains(.foldsPunctuation), !interpretation.isSubset(of: beside) {
            return false
        }
        return interpretation.contains(.removesParameters)
            || !interpretation.contains(.removesEncodedParameters)
    }

    /// The path's segments in an interpretation, one list for each script at which it may end; none
    /// when the interpretation makes nothing of the path.
    ///
    /// `rest`: `nil` for a request's path, and for a pattern whether it ends in `**`.
    static func segments(
        of path: String,
        _ interpretation: PathInterpretation,
        rest: Bool? = nil
    ) -> [[String]] {
        var segments = split(tokens(path, interpretation), interpretation)
        if interpretation.contains(.removesNetworkPath) {
            guard let host = segments.firstIndex(where: { !$0.isEmpty }), host > 0 else {
                return []
            }
            segments.removeFirst(host + 1)
        }
        if interpretation.contains(.mergesSlashes) {
            let endsEmpty = segments.last?.isEmpty == true
            segments.removeAll(where: \.isEmpty)
            if endsEmpty, !segments.isEmpty { segments.append([]) }
        }
        if interpretation.contains(.dropsTrailingSlash) {
            while segments.last?.isEmpty == true { segments.removeLast() }
        }
        if segments == [[]] { segments = [] }
        var texts = segments.map { String(decoding: $0, as: UTF8.self) }
        if interpretation.contains(.foldsCase) { texts = texts.map { $0.lowercased() } }
        let routed = cut(texts, interpretation).flatMap { route($0, interpretation, rest: rest) }
        guard interpretation.contains(.foldsPunctuation) else { return routed }
        return routed.map { path in
            path.map { text in
                text == "*" && rest != nil
                    ? text
                    : String(
                        text.map {
                            $0.isASCII && !$0.isLetter && !$0.isNumber && $0 > " " ? "_" : $0
                        }
                    )
            }
        }
    }

    private static func isScript(_ text: String) -> Bool {
        [".php", ".cgi", ".aspx"].contains(where: text.lowercased().hasSuffix)
    }

    private static func cut(_ texts: [String], _ interpretation: PathInterpretation) -> [[String]] {
        guard interpretation.contains(.cutsPathInfo) else { return [texts] }
        let scripts = texts.indices.filter { isScript(texts[$0]) }
        return scripts.isEmpty ? [texts] : scripts.map { Array(texts[...$0]) }
    }

    private static func route(
        _ texts: [String],
        _ interpretation: PathInterpretation,
        rest: Bool?
    ) -> [[String]] {
        var paths = [texts]
        if interpretation.contains(.dropsScript) {
            let scripts = texts.indices.dropLast().filter { isScript(texts[$0]) }
            if !scripts.isEmpty {
                paths = scripts.flatMap { script -> [[String]] in
                    let without = Array(texts[..<script] + texts[(script + 1)...])
                    // A request may be meant for a front controller in a folder.
                    return rest == nil ? [without, Array(texts[(script + 1)...])] : [without]
                }
            }
        }
        paths = paths.map { $0 == [""] ? [] : $0 }
        guard rest != true else { return paths }
        return paths.flatMap { path -> [[String]] in
            guard let last = path.last else { return [path] }
            let stem = last.lowercased().split(separator: ".", omittingEmptySubsequences: false)
            if interpretation.contains(.dropsIndex),
                stem[0] == "index" || stem[0] == "default" && stem.count > 1
            {
                var left = Array(path.dropLast())
                guard interpretation.contains(.dropsTrailingSlash) else {
                    return left.isEmpty ? [[]] : [left, left + [""]]
                }
                while left.last?.isEmpty == true { left.removeLast() }
                return [left]
            }
            let dots = last.indices.dropFirst().filter { last[$0] == "." }
            guard interpretation.contains(.dropsFormat), let first = dots.first,
                let end = dots.last,
                rest == nil || !isScript(last)
            else { return [path] }
            return [first, end].map { path.dropLast() + [String(last[..<$0])] }
        }
    }

    private static func tokens(_ path: String, _ interpretation: PathInterpretation) -> [Token] {
        var tokens: [Token] = []
        var rest = Array(path.utf8.dropFirst())[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: ";"), interpretation.contains(.endsAtSemicolon) { break }
            if byte == UInt8(ascii: "%"), !interpretation.contains(.keepsEscapes) {
                let digits = String(decoding: rest.prefix(2), as: UTF8.self)
                rest = rest.dropFirst(2)
                tokens.append(Token(byte: UInt8(digits, radix: 16) ?? 0, isEncoded: true))
            } else {
                tokens.append(Token(byte: byte, isEncoded: false))
            }
        }
        return tokens
    }

    private static func split(_ tokens: [Token], _ interpretation: PathInterpretation) -> [[UInt8]]
    {
        func parts(_ tokens: some Collection<Token>, encodedToo: Bool) -> [[Token]] {
            tokens.split(omittingEmptySubsequences: false) {
                $0.isSeparator(interpretation, encodedToo: encodedToo)
            }.map { Array($0) }
        }
        func withoutParameter(_ part: [Token], encodedToo: Bool) -> [Token] {
            Array(
                part.prefix { $0.byte != UInt8(ascii: ";") || $0.isEncoded && !encodedToo }
            )
        }
        guard !tokens.isEmpty else { return [] }
        var all: [[Token]]
        switch (
            interpretation.contains(.removesParameters),
            interpretation.contains(.removesEncodedParameters)
        ) {
        case (false, _): all = parts(tokens, encodedToo: true)
        case (true, false):
            all = parts(tokens, encodedToo: false)
                .map { withoutParameter($0, encodedToo: false) }
                .flatMap { $0.isEmpty ? [[]] : parts($0, encodedToo: true) }
        case (true, true):
            all = parts(tokens, encodedToo: true).map { withoutParameter($0, encodedToo: true) }
        }
        return all.map { $0.map(\.byte) }
    }
}

/// A rule's path, matched by the same slow means.
struct ReferencePattern {
    private let hasRest: Bool
    /// The segments in each interpretation.
    private let segments: [PathInterpretation: [[String]]]
    private static let interpretations = ReferenceInterpretations.all(of: .ofPatterns)

    init(_ text: String) {
        hasRest = text.hasSuffix("/**")
        let start = hasRest ? String(text.dropLast(3)) : text
        let hasRest = hasRest
        segments = Self.interpretations.reduce(into: [:]) {
            $0[$1] = ReferenceInterpretations.segments(of: start, $1, rest: hasRest)
        }
    }

    func matches(_ path: [String], _ interpretation: PathInterpretation) -> Bool {
        (segments[interpretation.intersection(.ofPatterns)] ?? []).contains { pattern in
            guard hasRest ? path.count >= pattern.count : path.count == pattern.count else {
                return false
            }
            return zip(pattern, path).allSatisfy { $0 == "*" ? !$1.isEmpty : $0 == $1 }
        }
    }
}
