import Encodings
import Expectations
import Foundation
import Testing

@testable import ConfigurationReading

@Suite struct ObjectFileTests {
    private static let object: [UInt8] = [0xA2, 0x69, 0x00, 0xFF, 0xFE, 0x7B, 0x20]

    @Test func `base64 of either alphabet is taken off, with or without padding and line breaks`() {
        let standard = Base64.encode(Self.object)
        let url = Base64.encodeURL(Self.object)
        #expect(standard != url)
        let wrapped = Array(standard.prefix(4)) + [0x0D, 0x0A] + standard.dropFirst(4) + [0x0A]
        for text in [standard, url, wrapped, [0x20, 0x09] + url] {
            expectEqual(ObjectFile.object(in: text), Self.object)
        }
    }

    @Test func `anything else is the object itself`() {
        for bytes in [Self.object, [], Array("AAA*".utf8), [0xA0], Array("A".utf8)] {
            expectEqual(ObjectFile.object(in: bytes), bytes)
        }
    }

    @Test func `a file is read, and no more of it than an object can have`() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("inspection-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: folder) } }
        let small = folder.appendingPathComponent("small")
        try Data(Self.object).write(to: small)
        try expectEqual(ObjectFile.bytes(small.path), Self.object)
        let large = folder.appendingPathComponent("large")
        try Data(repeating: 0xA2, count: ObjectFile.bytesMax + 1).write(to: large)
        try expectEqual(ObjectFile.bytes(large.path).count, ObjectFile.bytesMax)
        let missing = folder.appendingPathComponent("missing").path
        let error = #expect(throws: UsageError.self) { try ObjectFile.bytes(missing) }
        expectEqual(error?.message.contains(missing), true)
        let place = #expect(throws: UsageError.self) {
            try ObjectFile.bytes(folder.path, place: "--root")
        }
        expectEqual(place?.place, "--root")
    }

    @Test func `a file beside the object is read as a whole, or refused`() throws {
        let file = FileManager.default.temporaryDirectory
            .appendingPathComponent("inspection-\(UUID().uuidString)")
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: file) } }
        let count = ObjectFile.bytesMax + 1
        try Data(repeating: 0x20, count: count).write(to: file)
        try expectEqual(ObjectFile.whole(file.path, place: "--client-data").count, count)
        try Data(repeating: 0x20, count: ObjectFile.wholeBytesMax + 1).write(to: file)
        let error = #expect(throws: UsageError.self) {
            try ObjectFile.whole(file.path, place: "--client-data")
        }
        expectEqual(error?.message.contains("more than 16 MiB"), true)
    }
}
