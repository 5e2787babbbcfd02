import Glibc
import TestSupport

/// What a client and an origin do in one exchange. Both sides make it of its number, which stands
/// in the request's target, and its content too.
struct RandomExchange: Sendable {
    /// How a side ends in the middle of what it sends.
    enum Ending: CaseIterable, Sendable {
        /// It closes its connection.
        case close
        /// It resets its connection; over HTTP/2, the stream.
        case reset
        /// It sends nothing more, and goes on reading.
        case stall
        /// It sends nothing more, and reads nothing.
        case freeze
    }

    /// An ending, and the bytes that are sent before it.
    struct Break: Sendable {
        var ending: Ending
        var at: Int
    }

    enum Framing: CaseIterable, Sendable { case length, chunked, untilClose }

    let number: UInt64
    let method: String
    /// The client's content; `nil` for a request that has none.
    let upload: [UInt8]?
    let isUploadChunked: Bool
    let status: Int
    /// The content of the origin's response.
    let download: [UInt8]
    let framing: Framing
    /// Interim responses before the response.
    let interimCount: Int
    /// Whether the origin answers before it reads content.
    let answersEarly: Bool
    /// Whether the origin ends its connection after the exchange, and says so.
    let endsConnection: Bool
    /// Where the client ends in its request.
    let clientBreak: Break?
    /// Where the origin ends in the request's content that it reads.
    let readingBreak: Break?
    /// Where the origin ends in its response.
    let answerBreak: Break?
    /// The number for whatever else is chosen in the exchange.
    private let seed: UInt64

    /// - mayStall: whether a side may stop without an end. Only timeouts end such an exchange.
    init(_ number: UInt64, mayStall: Bool) {
        self.number = number
        var random = SeededGenerator(seed: number)
        let method = Self.methods.randomElement(using: &random) ?? "GET"
        self.method = method
        let hasContent =
            method == "POST" || method == "PUT" || method == "DELETE" && random.isOne(of: 4)
        func chance() -> Ending? {
            guard random.isOne(of: 8) else { return nil }
            return Ending.allCases.prefix(mayStall ? 4 : 2).randomElement(using: &random)
        }
        let (clientEnding, answerEnding) = (chance(), chance())
        let readingEnding = hasContent ? chance() : nil
        let upload =
            hasContent
            ? Self.content(.client, number, Self.size(&random, unread: readingEnding)) : nil
        self.upload = upload
        isUploadChunked = random.isOne(of: 2)
        status = Self.statuses.randomElement(using: &random) ?? 200
        download =
            method == "HEAD" || status == 204 || status == 304
            ? [] : Self.content(.origin, number, Self.size(&random, unread: clientEnding))
        framing = Framing.allCases.randomElement(using: &random) ?? .length
        interimCount = random.isOne(of: 4) ? Int.random(in: 1...3, using: &random) : 0
        answersEarly = random.isOne(of: 5)
        endsConnection = random.isOne(of: 6)
        func stop(_ ending: Ending?, within bytes: Int) -> Break? {
            // A side that does not read has a small buffer, which is slow.
            let most = ending == .freeze ? min(bytes, 20_000) : bytes
            return ending.map { Break(ending: $0, at: Int.random(in: 0...most, using: &random)) }
        }
        // A head has some hundred bytes.
        clientBreak = stop(clientEnding, within: 200 + (upload?.count ?? 0))
        readingBreak = stop(readingEnding, within: upload?.count ?? 0)
        answerBreak = stop(answerEnding, within: 200 + download.count)
        seed = random.next()
    }

    /// The exchange of a request's target; `nil` for another target.
    init?(target: String, mayStall: Bool) {
        guard target.hasPrefix("/"), let number = UInt64(target.dropFirst()) else { return nil }
        self.init(number, mayStall: mayStall)
    }

    private static let methods = ["GET", "HEAD", "POST", "POST", "PUT", "DELETE"]
    private static let statuses = [200, 200, 200, 201, 204, 304, 404, 500, 503]

    /// Whether both sides do all that they should.
    var isOrderly: Bool { clientBreak == nil && readingBreak == nil && answerBreak == nil }

    /// Whether what follows on the client's connection is served, too, as far as this exchange
    /// decides.
    var keepsConnection: Bool { isOrderly && !(answersEarly && upload != nil) }

    // MARK: Bytes

    /// What a request's head says of the content.
    var uploadFraming: String {
        guard let upload else { return "" }
        return isUploadChunked
            ? "Transfer-Encoding: chunked\r\n" : "Content-Length: \(upload.count)\r\n"
    }

    /// The request's bytes.
    var request: [UInt8] {
        let head = "\(method) /\(number) HTTP/1.1\r\nHost: a.test\r\n\(uploadFraming)\r\n"
        guard let upload else { return Array(head.utf8) }
        return Array(head.utf8) + (isUploadChunked ? chunks(of: upload) : upload)
    }

    /// The bytes of the response, and of the interim ones before it.
    var answer: [UInt8] {
        let interim = String(
            repeating: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
            count: interimCount
        )
        var head = "HTTP/1.1 \(status) Whatever\r\nX-Exchange: \(number)\r\n"
        if endsConnection { head += "Connection: close\r\n" }
        guard method != "HEAD", status != 204, status != 304 else {
            return Array("\(interim)\(head)\r\n".utf8)
        }
        switch framing {
        case .length: head += "Content-Length: \(download.count)\r\n"
        case .chunked: head += "Transfer-Encoding: chunked\r\n"
        case .untilClose: break
        }
        let content = framing == .chunked ? chunks(of: download) : download
        return Array("\(interim)\(head)\r\n".utf8) + content
    }

    /// Whether the origin's connection ends with the response.
    var endsWithAnswer: Bool {
        endsConnection
            || framing == .untilClose && method != "HEAD" && status != 204 && status != 304
    }

    /// The same bytes in pieces, each of which is sent by itself.
    func pieces(of bytes: ArraySlice<UInt8>) -> [[UInt8]] {
        var random = SeededGenerator(seed: seed ^ UInt64(bytes.count))
        // Many small pieces of much content take too long.
        let most = random.isOne(of: 3) && bytes.count < 2_000 ? 20 : max(bytes.count / 3, 1_000)
        return Self.cut(bytes, most, &random)
    }

    private func chunks(of content: [UInt8]) -> [UInt8] {
        var random = SeededGenerator(seed: seed)
        let pieces = Self.cut(content[...], max(content.count / 4, 10), &random)
        let chunks = pieces.map { piece -> [UInt8] in
            Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + [13, 10]
        }
        return chunks.joined() + Array("0\r\n\r\n".utf8)
    }

    private static func cut(
        _ bytes: ArraySlice<UInt8>,
        _ most: Int,
        _ random: inout SeededGenerator
    ) -> [[UInt8]] {
        var (pieces, rest): ([[UInt8]], ArraySlice<UInt8>) = ([], bytes)
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...most, using: &random))
            pieces.append(Array(piece))
            rest = rest.dropFirst(piece.count)
        }
        return pieces
    }

    /// Whether bytes are the first ones of content: C's comparison, since one in Swift takes a
    /// hundred times as long in a debug build.
    static func are(_ bytes: [UInt8], theFirstOf content: [UInt8]) -> Bool {
        bytes.count <= content.count
            && bytes.withUnsafeBytes { bytes in
                content.withUnsafeBytes { content in
                    guard let first = bytes.baseAddress, let other = content.baseAddress else {
                        return true
                    }
                    return memcmp(first, other, bytes.count) == 0
                }
            }
    }

    private enum Side: UInt64 { case client, origin }

    /// - unread: how the reading side ends. Where it only stops to read, more comes than systems
    ///   take for it.
    private static func size(_ random: inout SeededGenerator, unread: Ending?) -> Int {
        // Linux: up to 4 MiB wait on each side of a connection (tcp_wmem, tcp_rmem).
        if unread == .freeze { return 8_000_000 }
        let most = [0, 100, 5_000, 70_000, 400_000].randomElement(using: &random) ?? 0
        return Int.random(in: 0...most, using: &random)
    }

    private static func content(_ side: Side, _ number: UInt64, _ count: Int) -> [UInt8] {
        let start = Int((number &* 2 &+ side.rawValue) &* 7_919 % UInt64(source.count / 2))
        return Array(source[start..<min(start + count, source.count)])
    }

    /// Bytes of which each exchange has its own part.
    private static let source: [UInt8] = {
        var random = SeededGenerator(seed: 1)
        let words = (0..<1 << 21).map { _ in random.next() }
        return words.withUnsafeBytes { Array($0) }
    }()
}

extension SeededGenerator {
    /// True once in so many times.
    mutating func isOne(of count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }
}
