package import Foundation

/// The vectors that the repository keeps: one made by SoftwareAuthenticator for each class of
/// genuine vector, so that a clone without the shared folder tries all of them.
///
/// `SoftwareVectorTests` makes them, and compares them with what it would make.
package enum SoftwareVectorFiles {
    /// What the ids of these vectors begin with.
    package static let prefix = "software-"

    /// Tests/Vectors.
    package static let folder = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Vectors")

    /// The authority's certificate, in PEM. It stands for both of Apple's.
    package static let rootPEM: String = {
        do {
            let file = folder.appendingPathComponent("software-root.pem")
            return try String(contentsOf: file, encoding: .utf8)
        } catch {
            fatalError("Tests/Vectors: \(error)")
        }
    }()

    /// The files of one kind (`attestations`, `assertions`, `receipts`), in the order of their
    /// names. One that can't be read stops the tests.
    package static func files(_ kind: String) throws -> [(id: String, file: VectorFile)] {
        let folder = folder.appendingPathComponent(kind)
        return try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(".txt") }.sorted()
            .map { name in
                let text = try String(
                    contentsOf: folder.appendingPathComponent(name),
                    encoding: .utf8
                )
                return (prefix + String(name.dropLast(4)), try VectorFile(text))
            }
    }
}
