import Expectations
import Testing

@testable import HTTPWire

struct TrailerSectionTests {
    private static func read(_ text: String, bytesMax: Int = 100) -> Result<String, Malformed> {
        var limits = HeadLimits()
        limits.trailerBytesMax = bytesMax
        limits.trailerFieldsMax = 2
        do throws(Malformed) {
            let section = try TrailerSection(whole: Array(text.utf8), limits: limits)
            var lines: [UInt8] = []
            section.appendFields(to: &lines)
            return .success(String(decoding: lines, as: UTF8.self))
        } catch {
            return .failure(error)
        }
    }

    @Test func `a whole section is read as one that comes in pieces`() throws {
        #expect(try Self.read("\r\n").get().isEmpty)
        try expectEqual(Self.read("a: b\r\n\r\n").get(), "a: b\r\n")
        try expectEqual(Self.read("a: b\r\ncontent-length: 3\r\n\r\n").get(), "a: b\r\n")
    }

    @Test(arguments: [
        ("a: b\r\n", Malformed.Reason.bodyTruncated), ("a: b\rc: d\r\n\r\n", .bareCarriageReturn),
        ("a: b\nc: d\r\n\r\n", .bareLineFeed), ("a b\r\n\r\n", .fieldNameSyntax),
        ("a: b\r\nc: d\r\ne: f\r\n\r\n", .trailersTooLong),
    ])
    func `a section that is no section is malformed`(_ text: String, _ reason: Malformed.Reason) {
        #expect(throws: Malformed(reason, at: 0)) { try Self.read(text).get() }
    }

    @Test func `a section is as long as its bound, and no longer`() throws {
        let text = "a: bcd\r\n\r\n"
        try expectEqual(Self.read(text, bytesMax: 8).get(), "a: bcd\r\n")
        #expect(throws: Malformed.self) { try Self.read(text, bytesMax: 7).get() }
    }
}
