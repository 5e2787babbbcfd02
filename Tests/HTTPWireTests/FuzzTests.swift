import Expectations
import FuzzTargets
import HTTPWire
import TestSupport
import Testing

/// Changes bytes in ways that a seed decides.
private struct Mutator {
    private var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    private mutating func next() -> UInt64 { random.next() }

    mutating func index(_ count: Int) -> Int { Int(next() % UInt64(max(count, 1))) }

    static let dictionary = [
        "\r\n", "\r", "\n", "\r\n\r\n", ":", " ", "\t", ";", "\"", "\\", "%", "%2f", "..", "0",
        "ffffffff",
        "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Host: b\r\n",
        "Connection: te, x\r\n",
        "99999999999999999999", "http://", "[::1]", "_", "\u{0}", "/", "HTTP/1.0",
    ].map { Array($0.utf8) }

    mutating func mutated(_ source: [UInt8]) -> [UInt8] {
        var bytes = source
        for _ in 0...index(4) {
            let place = index(bytes.count + 1)
            switch index(6) {
            case 0 where place < bytes.count: bytes[place] = UInt8(truncatingIfNeeded: next())
            case 1 where place < bytes.count: bytes.remove(at: place)
            case 2:
                bytes.insert(contentsOf: Self.dictionary[index(Self.dictionary.count)], at: place)
            case 3: bytes.insert(UInt8(truncatingIfNeeded: next()), at: place)
            case 4: bytes.removeSubrange(place...)
            default: bytes.insert(contentsOf: bytes[..<place].suffix(8), at: place)
            }
        }
        return bytes
    }

    /// Cuts bytes in up to four pieces.
    mutating func pieces(_ bytes: [UInt8]) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var rest = bytes[...]
        for _ in 0..<index(4) {
            let cut = index(rest.count + 1)
            pieces.append(Array(rest.prefix(cut)))
            rest = rest.dropFirst(cut)
        }
        pieces.append(Array(rest))
        return pieces
    }
}

/// Whatever arrives: it is read or thrown at, and reading it in pieces changes nothing.
struct FuzzTests {
    private static let requests = [
        "GET /a/b%20c;d?e=f HTTP/1.1\r\nHost: a.test:80\r\nX-A: b\r\n"
            + "Connection: close, X-A\r\n\r\n",
        "POST http://a.test/x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n"
            + "helloGET / HTTP/1.1\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "5;a=\"b\"\r\nhello\r\n0\r\nX: y\r\n\r\n",
    ].map { Array($0.utf8) }
    private static let responses = [
        "HTTP/1.1 103 X\r\nLink: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
            + "3\r\nabc\r\n0\r\nX: y\r\n\r\n",
        "HTTP/1.0 200\r\nConnection: keep-alive\r\nX : y\r\n\r\nabc",
    ].map { Array($0.utf8) }

    @Test(arguments: 0..<4)
    func `mutated requests end as they do in one piece`(_ seed: Int) {
        var mutator = Mutator(seed: UInt64(seed))
        for round in 0..<1500 {
            let bytes = mutator.mutated(Self.requests[round % Self.requests.count])
            let cut = RequestStream(mutator.pieces(bytes))
            #expect(RequestStream([bytes]).agrees(with: cut), "\(bytes)")
        }
    }

    @Test(arguments: 0..<4)
    func `mutated responses end as they do in one piece`(_ seed: Int) {
        var mutator = Mutator(seed: UInt64(seed) + 100)
        for round in 0..<1500 {
            let bytes = mutator.mutated(Self.responses[round % Self.responses.count])
            let cut = ResponseStream(mutator.pieces(bytes), to: .get)
            #expect(ResponseStream([bytes], to: .get).agrees(with: cut), "\(bytes)")
        }
    }

    @Test func `what is written for any head reads again`() {
        var mutator = Mutator(seed: 7)
        for round in 0..<3000 {
            let bytes = mutator.mutated(Self.requests[round % Self.requests.count])
            let fault = FuzzTarget.faultOfRewriting(bytes)
            expectEqual(fault, nil, "\(bytes)")
        }
    }

    @Test func `any bytes as path, address, field list are read or refused`() {
        var mutator = Mutator(seed: 9)
        var view = TargetView()
        let seeds = ["/a/%2e%2e/b;c//d", "2001:db8::1.2.3.4", "for=\"[::1]:4\", for=1.2.3.4"]
            .map { Array($0.utf8) }
        for round in 0..<400 {
            let bytes = mutator.mutated(seeds[round % seeds.count])
            view.read(bytes.span, 0..<bytes.count)
            _ = view.refusal(allowing: PathConstructs(rawValue: UInt16(truncatingIfNeeded: round)))
            let walk = view.visitInterpretations(.all, odd: .ofPatterns, depth: 3) {
                _,
                text,
                ends in
                (ends.isEmpty ? 0 : ends[ends.count - 1]) <= text.count
            }
            #expect(walk != .stopped)
            if let address = IPAddress(bytes.span, 0..<bytes.count) {
                expectEqual(IPAddress(address.text), address)
            }
        }
    }

    private static let proxyHeaders: [[UInt8]] = [
        Array("PROXY TCP4 192.0.2.1 198.51.100.7 51234 443\r\nGET / HTTP/1.1\r\n".utf8),
        Array("PROXY TCP6 2001:db8::1 ::ffff:192.0.2.1 65535 0\r\n".utf8),
        Array("PROXY UNKNOWN 1 2 3\r\n".utf8),
        [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10, 0x21, 0x11, 0, 19]
            + [192, 0, 2, 1, 198, 51, 100, 7, 0xC8, 0x22, 1, 0xBB, 2, 0, 4, 1, 2, 3, 4],
    ]

    @Test func `mutated PROXY headers end at one place, and who they name is written again`() {
        var mutator = Mutator(seed: 11)
        for round in 0..<4_000 {
            let seed = Self.proxyHeaders[round % Self.proxyHeaders.count]
            // A claim that does not hold ends the process.
            FuzzTarget.proxyHeaders.run(mutator.mutated(seed))
        }
    }

    private static let lists = [
        "1.1.1.1, 2.2.2.2", "\", \"\\", "for=\"[::1]:80\";by=_x, for=\"a,b\\\"c\"", "for=\"",
        "[2001:db8::1]:443,unknown", "for=1.1.1.1;for=2.2.2.2;host=\"x;y\",;=,",
    ]

    @Test func `whatever stands in a list of addresses, what a proxy appends is read`() throws {
        var mutator = Mutator(seed: 5)
        let peer = IPAddress.v4(0x7F00_0001)
        let appended: [(ClientAddress.Source, String, String)] = [
            (.xForwardedFor, "X-Forwarded-For", "198.51.100.7"),
            (.xForwardedFor, "X-Forwarded-For", "[2001:db8::7]:443"),
            (.forwarded, "Forwarded", "for=198.51.100.7"),
            (.forwarded, "Forwarded", #"by="a,\"b";for="[2001:db8::7]:443";proto=https"#),
        ]
        var address = ClientAddress()
        var read = 0
        for _ in 0..<4_000 {
            let list = mutator.mutated(Array(Self.lists[mutator.index(Self.lists.count)].utf8))
            for (source, name, entry) in appended {
                let bytes =
                    Array("GET / HTTP/1.1\r\nHost: a\r\n\(name): ".utf8) + list
                    + Array(", \(entry)\r\n\r\n".utf8)
                var head = RequestHead()
                // A line end in the list makes other fields of it, or no head at all.
                guard !list.contains(13), !list.contains(10),
                    (try? head.read(bytes.span, isSecure: false, limits: HeadLimits())) != nil
                else { continue }
                address.read(head.fields, bytes.span, source: source, peer: peer) { $0 == peer }
                let expected = entry.contains("2001") ? "2001:db8::7" : "198.51.100.7"
                expectEqual(address.client.text, expected, "\(text(list, 0..<list.count))")
                read += 1
            }
        }
        #expect(read > 4_000)
    }
}
