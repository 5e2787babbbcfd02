/// Cuts Swift into tokens and comments, well enough to tell code from what merely looks like it.
///
/// It knows nested comments, plain, multi-line and raw strings, interpolation and raw identifiers.
/// It does not know regular expression literals, which the project does not use.
struct Lexer {
    private(set) var tokens: [SwiftSource.Token] = []
    private(set) var comments: [SwiftSource.Comment] = []
    private let bytes: [UInt8]
    private var place = 0
    private var line = 1
    private var isSpaced = true

    init(_ text: String) {
        bytes = Array(text.utf8)
    }

    mutating func run() {
        while place < bytes.count { step() }
    }

    private func byte(_ offset: Int = 0) -> UInt8 {
        place + offset < bytes.count ? bytes[place + offset] : 0
    }

    private func text(from start: Int) -> String {
        String(decoding: bytes[start..<min(place, bytes.count)], as: UTF8.self)
    }

    private mutating func advance() {
        if byte() == UInt8(ascii: "\n") { line += 1 }
        place += 1
    }

    private mutating func add(_ kind: SwiftSource.Kind, _ text: String, line: Int) {
        let token = SwiftSource.Token(
            kind: kind,
            text: text,
            line: line,
            isSpacedBefore: isSpaced
        )
        tokens.append(token)
        isSpaced = false
    }

    private mutating func step() {
        let first = byte()
        switch first {
        case 0x20, 0x09, 0x0a, 0x0d:
            advance()
            isSpaced = true
        case UInt8(ascii: "/") where byte(1) == UInt8(ascii: "/"): lineComment()
        case UInt8(ascii: "/") where byte(1) == UInt8(ascii: "*"): blockComment()
        case UInt8(ascii: "\""): string(hashes: 0)
        case UInt8(ascii: "#"): hash()
        case UInt8(ascii: "`"): rawIdentifier()
        case _ where Self.isWord(first): word()
        default:
            advance()
            add(.punctuation, String(UnicodeScalar(first)), line: line)
        }
    }

    /// Which bytes are of words: a table, since nine millions are asked about.
    private static let wordBytes: [Bool] = (0...255 as ClosedRange<UInt8>).map { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"),
            0x80...0xff:
            true
        default: false
        }
    }

    private static func isWord(_ byte: UInt8) -> Bool { wordBytes[Int(byte)] }

    private mutating func word() {
        let start = place
        while Self.isWord(byte()), place < bytes.count { advance() }
        let isNumber = bytes[start] >= UInt8(ascii: "0") && bytes[start] <= UInt8(ascii: "9")
        add(isNumber ? .number : .word, text(from: start), line: line)
    }

    private mutating func rawIdentifier() {
        let start = place + 1
        advance()
        while place < bytes.count, byte() != UInt8(ascii: "`") { advance() }
        add(.rawIdentifier, text(from: start), line: line)
        advance()
    }

    private mutating func lineComment() {
        let start = place
        while place < bytes.count, byte() != UInt8(ascii: "\n") { advance() }
        let comment = SwiftSource.Comment(
            text: text(from: start),
            firstLine: line,
            lastLine: line
        )
        comments.append(comment)
        isSpaced = true
    }

    private mutating func blockComment() {
        let (start, firstLine) = (place, line)
        var depth = 0
        repeat {
            if byte() == UInt8(ascii: "/"), byte(1) == UInt8(ascii: "*") {
                depth += 1
                advance()
            } else if byte() == UInt8(ascii: "*"), byte(1) == UInt8(ascii: "/") {
                depth -= 1
                advance()
            }
            advance()
        } while depth > 0 && place < bytes.count
        let comment = SwiftSource.Comment(
            text: text(from: start),
            firstLine: firstLine,
            lastLine: line
        )
        comments.append(comment)
        isSpaced = true
    }

    /// A raw string's start, or a `#word`.
    private mutating func hash() {
        var hashes = 0
        while byte(hashes) == UInt8(ascii: "#") { hashes += 1 }
        guard byte(hashes) == UInt8(ascii: "\"") else {
            advance()
            return add(.punctuation, "#", line: line)
        }
        place += hashes
        string(hashes: hashes)
    }

    private mutating func string(hashes: Int) {
        let firstLine = line
        let quote = UInt8(ascii: "\"")
        let isMultiLine = byte(1) == quote && byte(2) == quote
        let quotes = isMultiLine ? 3 : 1
        place += quotes
        let start = place
        add(.string, "", line: firstLine)
        let index = tokens.count - 1
        while place < bytes.count, !isAhead(quotes, of: quote, then: hashes) {
            if !isMultiLine, byte() == UInt8(ascii: "\n") { break }
            guard byte() == UInt8(ascii: "\\"), areHashes(hashes, at: 1) else {
                advance()
                continue
            }
            place += 1 + hashes
            if byte() == UInt8(ascii: "(") { interpolation() } else { advance() }
        }
        tokens[index] = SwiftSource.Token(
            kind: .string,
            text: text(from: start),
            line: firstLine,
            isSpacedBefore: tokens[index].isSpacedBefore
        )
        place += quotes + hashes
        isSpaced = false
    }

    private func areHashes(_ count: Int, at offset: Int) -> Bool {
        (0..<count).allSatisfy { byte(offset + $0) == UInt8(ascii: "#") }
    }

    private func isAhead(_ count: Int, of quote: UInt8, then hashes: Int) -> Bool {
        byte() == quote && (0..<count).allSatisfy { byte($0) == quote }
            && areHashes(hashes, at: count)
    }

    /// What stands between `\(` and its bracket is code.
    private mutating func interpolation() {
        var depth = 0
        repeat {
            if byte() == UInt8(ascii: "(") { depth += 1 }
            if byte() == UInt8(ascii: ")") { depth -= 1 }
            step()
        } while depth > 0 && place < bytes.count
    }
}
