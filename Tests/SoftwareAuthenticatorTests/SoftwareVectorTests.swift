import Encodings
import Expectations
import Foundation
import TestSupport
import Testing

/// The vectors of the repository, and the command that makes them anew:
///
///     PORTCULLIS_MAKE_VECTORS=1 swift test --filter SoftwareVectorTests
@Suite(.serialized) struct SoftwareVectorTests {
    private static let isMaking =
        ProcessInfo.processInfo.environment["PORTCULLIS_MAKE_VECTORS"] != nil

    @Test(.enabled(if: isMaking, "PORTCULLIS_MAKE_VECTORS is not set"))
    func `the vectors of the repository are made anew`() throws {
        let vectors = SoftwareVectors()
        for (path, file) in try vectors.files() {
            let place = SoftwareVectorFiles.folder.appendingPathComponent(path)
            try FileManager.default.createDirectory(
                at: place.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(file.text.utf8).write(to: place)
        }
        let root = SoftwareVectorFiles.folder.appendingPathComponent("software-root.pem")
        try Data(vectors.rootPEM.utf8).write(to: root)
    }

    @Test func `each class of genuine vector has a file, and it says what the maker says today`()
        throws
    {
        let made = try SoftwareVectors().files()
        for (path, file) in made {
            let text = try String(
                contentsOf: SoftwareVectorFiles.folder.appendingPathComponent(path),
                encoding: .utf8
            )
            let kept = try VectorFile(text)
            expectEqual(kept.text, text, "\(path)")
            expectEqual(kept.header.map(\.name), file.header.map(\.name), "\(path)")
            expectEqual(kept.header.map(\.value), file.header.map(\.value), "\(path)")
            // Signatures differ, and with them a few lengths.
            let lengths = [kept, file].map { Base64.decode($0.object)?.count ?? 0 }
            #expect(lengths[0] > 100 && abs(lengths[0] - lengths[1]) < 64, "\(path): \(lengths)")
        }
        let paths = try ["attestations", "assertions", "receipts"].flatMap { kind in
            try SoftwareVectorFiles.files(kind).map { id, _ in
                kind + "/" + id.dropFirst(SoftwareVectorFiles.prefix.count) + ".txt"
            }
        }
        expectEqual(Set(paths), Set(made.map(\.path)))
    }

    @Test func `the receipt of 2020 has signed attributes, and the later ones have none`() throws {
        // The object identifier of messageDigest, which each set of signed attributes has
        // (RFC 5652 §11.2).
        let digest: [UInt8] = [
            0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x04,
        ]
        for (id, file) in try SoftwareVectorFiles.files("receipts") {
            let object = try #require(Base64.decode(file.object))
            let hasAttributes = object.firstRange(of: digest) != nil
            expectEqual(hasAttributes, id.hasSuffix("2020"), "\(id)")
        }
    }

    @Test(arguments: [
        "expect: accept\nfoo: bar\n\nAAAA\n", "expect: accept\nexpect: accept\n\nAAAA\n",
        "expect accept\n\nAAAA\n", "expect: accept\nAAAA\n", "",
    ])
    func `a vector with a header that nobody reads is refused`(text: String) {
        #expect(throws: VectorFile.Malformed.self) { try VectorFile(text) }
    }
}
