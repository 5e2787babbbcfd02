import Cryptography
import Encodings
import HTTPWire

/// Heads and content, without sockets.
enum HTTPBenchmarks {
    static var all: [() -> [Benchmark]] { [heads, names, forwarding, relay, content] }

    static let limits = HeadLimits()
    static let minimal = "GET /v1/orders/17 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
    static let browser = """
        GET /v1/orders/17?expand=items&locale=en-GB HTTP/1.1\r
        Host: api.example.com\r
        User-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15\r
        Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r
        Accept-Language: en-GB,en;q=0.9,de;q=0.7\r
        Accept-Encoding: gzip, deflate, br\r
        Referer: https://www.example.com/account/orders\r
        Cookie: session=3f9a6c1e55b04a1c9b7d; theme=dark; consent=necessary; region=eu-west\r
        Sec-Fetch-Dest: document\r
        Sec-Fetch-Mode: navigate\r
        Sec-Fetch-Site: same-origin\r
        Connection: keep-alive\r
        \r

        """
    /// The same with fields that fill it up to 8 KiB.
    static var large: String {
        let field = "X-Filling: " + String(repeating: "abcdefgh ", count: 25) + "\r\n"
        let count = (8_192 - browser.utf8.count) / field.utf8.count
        return withFields(browser, String(repeating: field, count: count))
    }

    /// A head with more fields at its end.
    static func withFields(_ head: String, _ fields: String) -> String {
        // CR LF is one character: this takes the blank line off.
        head.dropLast() + fields + "\r\n"
    }

    private static func heads() -> [Benchmark] {
        let texts = [("minimal", minimal), ("a browser's", browser), ("8 KiB", large)]
        return texts.map { name, text in
            let bytes = Array(text.utf8)
            var head = RequestHead()
            return Benchmark(group: "request head", name: name) { _ in
                read(bytes, into: &head)
            }
        }
    }

    /// Finds the end of a head and reads it.
    static func read(_ bytes: [UInt8], into head: inout RequestHead) -> Bool {
        var scanner = HeadScanner(.request(isSecure: false))
        do throws(Malformed) {
            guard
                case .complete(let range) = try scanner.scan(bytes.span, limits: limits)
            else { return false }
            let span = bytes.span.extracting(range)
            try head.read(span, isSecure: false, limits: limits)
            return true
        } catch {
            return false
        }
    }

    private static func names() -> [Benchmark] {
        var source = RequestIDSource(key: (1, 2))
        var out: [UInt8] = []
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let fields = "X-Request-Id: 7f3c9a1e\r\ntraceparent: \(trace)\r\n"
        let bytes = Array(withFields(browser, fields).utf8)
        var head = RequestHead()
        _ = read(bytes, into: &head)
        return [
            Benchmark(group: "request id", name: "made and written") { _ in
                out.removeAll(keepingCapacity: true)
                HeadWriter.requestID(source.next(), into: &out)
                return out.count == 48
            },
            Benchmark(group: "request id", name: "read, with a trace") { _ in
                head.fields.requestID(bytes.span) != nil
                    && head.fields.spanContext(bytes.span) != nil
            },
        ]
    }

    private static func forwarding() -> [Benchmark] {
        guard let peer = IPAddress("192.0.2.17") else { return [] }
        let provenance = ProvenanceWriter(peer: peer, peerIsTrusted: false, isSecure: true)
        let bytes = Array(browser.utf8)
        var head = RequestHead()
        _ = read(bytes, into: &head)
        let options = HeadWriter.RequestOptions()
        var out: [UInt8] = []
        return [
            Benchmark(group: "request head", name: "written for the origin") { _ in
                out.removeAll(keepingCapacity: true)
                HeadWriter.beginRequest(head, bytes.span, options: options, into: &out)
                provenance.write(head, bytes.span, from: ClientAddress(), into: &out)
                HeadWriter.endHead(into: &out)
                return out.count > bytes.count / 2
            }
        ]
    }

    private static func relay() -> [Benchmark] {
        let piece = String(repeating: "x", count: 4_096)
        let chunks = String(repeating: "1000\r\n\(piece)\r\n", count: 4) + "0\r\n\r\n"
        let fields = """
            HTTP/1.1 200 OK\r
            Server: origin\r
            Date: Tue, 14 Oct 2025 10:00:00 GMT\r
            Content-Type: application/json; charset=utf-8\r
            Cache-Control: private, max-age=0\r
            ETag: "5f3c-62a1"\r
            Vary: Accept-Encoding\r

            """
        let small = fields + "Content-Length: 64\r\n\r\n" + piece.prefix(64)
        let chunked = fields + "Transfer-Encoding: chunked\r\n\r\n" + chunks
        let messages = [("64 bytes", small), ("16 KiB in 4 chunks", chunked)]
        return messages.map { name, text in
            let bytes = Array(text.utf8)
            let relay = ResponseRelay()
            return Benchmark(group: "response relay", name: name) { _ in relay.pass(bytes.span) }
        }
    }

    private static func content() -> [Benchmark] {
        let block = [UInt8](repeating: 7, count: 65_536)
        let digest = SHA256.digest(of: block)
        let bytes = digest.array
        var text: [UInt8] = []
        let assertion = Base64.encode([UInt8](repeating: 0x5A, count: 142))
        return [
            Benchmark(group: "content", name: "digest of 64 KiB") { _ in
                var stream = SHA256.Stream()
                stream.update(block.span)
                return stream.digest() == digest
            },
            Benchmark(group: "content", name: "base64 of a digest written") { _ in
                text.removeAll(keepingCapacity: true)
                Base64.append(bytes.span, to: &text)
                return text.count == 44
            },
            Benchmark(group: "content", name: "base64 of an assertion read") { _ in
                Base64.decode(assertion.span)?.count == 142
            },
        ]
    }
}
