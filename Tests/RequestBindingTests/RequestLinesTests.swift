import Expectations
import RequestBinding
import Testing

@Suite struct RequestLinesTests {
    private let digest = [UInt8](repeating: 7, count: 32)

    private func text(_ parts: SignedParts, headers: [(name: String, value: String?)] = [])
        -> String
    {
        let data = RequestLines.clientData(
            parts,
            of: RequestLines.Request(
                method: "POST",
                target: "/v1/orders?dry=1",
                digest: digest,
                headers: headers
            ),
            challenge: "AQEA"
        )
        return String(decoding: data, as: UTF8.self)
    }

    @Test func `all four parts are written in their order, each ended by one line feed`() {
        expectEqual(
            text(.all),
            """
            portcullis-request-v1
            POST
            /v1/orders?dry=1
            sha-256=:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=:
            AQEA

            """
        )
    }

    @Test func `a part that is left out is a hyphen`() {
        expectEqual(
            text([.method, .target]),
            "portcullis-request-v1\nPOST\n/v1/orders?dry=1\n-\n-\n"
        )
        expectEqual(text([.challenge]), "portcullis-request-v1\n-\n-\n-\nAQEA\n")
    }

    @Test func `an absent header and an empty one differ`() {
        let absent = text([.method], headers: [("idempotency-key", nil)])
        let empty = text([.method], headers: [("idempotency-key", "")])
        #expect(absent.hasSuffix("-\nidempotency-key\n"))
        #expect(empty.hasSuffix("-\nidempotency-key: \n"))
    }

    @Test func `several lines of one header are joined by a comma and a space`() {
        var lines = RequestLines()
        lines.beginBehindDigest([])
        lines.challenge(nil)
        lines.header(Array("x-a".utf8).span)
        lines.value(Array("1".utf8).span)
        lines.value(Array("2".utf8).span)
        lines.endHeader()
        expectEqual(String(decoding: lines.bytes, as: UTF8.self), "-\nx-a: 1, 2\n")
    }

    @Test(arguments: [SignedParts.all, [.method, .body], [.target, .challenge], []])
    func `lines whose digest comes later are the lines of the whole`(parts: SignedParts) {
        let (method, target) = (Array("POST".utf8), Array("/v1/orders?dry=1".utf8))
        var lines = RequestLines()
        lines.begin(parts, method: method.span)
        lines.target(target.span)
        let before = lines.bytes
        lines.beginBehindDigest(parts)
        lines.challenge(Array("AQEA".utf8).span)
        let behind = lines.bytes
        lines.resume(behind: before, parts, hasDigest: false)
        lines.digest(digest.span)
        let whole = lines.bytes + behind
        expectEqual(String(decoding: whole, as: UTF8.self), text(parts))
    }

    @Test func `a line out of turn is a bug of the caller`() async {
        await #expect(processExitsWith: .failure) {
            var lines = RequestLines()
            lines.begin(.all, method: Array("GET".utf8).span)
            lines.digest([UInt8](repeating: 7, count: 32).span)
        }
    }
}

@Suite struct ContentDigestTests {
    static let good = "sha-256=:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=:"
    static let digest = [UInt8](repeating: 7, count: 32)

    @Test(arguments: [
        (good, ContentDigest.Reading.digest(digest)),
        ("  \(good)\t", .digest(digest)),
        ("md5=:AAAA:, \(good)", .digest(digest)),
        ("\(good), \(good)", .digest(digest)),
        ("\(good),sha-256=:AAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=:", .malformed),
        ("sha-512=:AAAA:", .absent),
        ("", .absent),
        ("sha-256", .malformed),
        ("sha-256=", .malformed),
        ("sha-256=::", .malformed),
        ("sha-256=:BwcH:", .malformed),
        ("SHA-256=:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=:", .malformed),
        ("\(good);p=1", .malformed),
        (",", .malformed),
        // No dictionary, so that a digest in it says nothing, either.
        ("\(good),", .malformed),
        ("\(good), ", .malformed),
        ("a b=:AAAA:, \(good)", .malformed),
        ("5=:AAAA:, \(good)", .malformed),
        ("=:AAAA:, \(good)", .malformed),
        ("md5=:A=AA:, \(good)", .malformed),
        ("md5=:AA AA:, \(good)", .malformed),
        ("md5=:AA_-:, \(good)", .malformed),
        ("sha-256=:__cHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=:", .malformed),
        ("*a-5_.b=::, \(good)", .digest(digest)),
    ])
    func `a field reads as`(text: String, reading: ContentDigest.Reading) {
        expectEqual(ContentDigest.read(Array(text.utf8).span), reading)
    }
}
