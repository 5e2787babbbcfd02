package import Foundation

/// The genuine objects that lie beside the package, in `../shared/vectors`; PORTCULLIS_SHARED names
/// another place.
package enum SharedVectorFiles {
    /// Where they are; `nil`, and a line that says so, when they are absent.
    package static let folder: URL? = {
        let vectors = shared?.appendingPathComponent("vectors")
        guard let vectors, FileManager.default.fileExists(atPath: vectors.path) else {
            print("no ../shared/vectors beside the package: genuine objects are not tried")
            return nil
        }
        return vectors
    }()

    private static let shared: URL? = {
        if let path = ProcessInfo.processInfo.environment["PORTCULLIS_SHARED"] {
            return URL(fileURLWithPath: path)
        }
        var folder = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        while folder.path != "/" {
            folder.deleteLastPathComponent()
            let manifest = folder.appendingPathComponent("Package.swift").path
            if FileManager.default.fileExists(atPath: manifest) {
                return folder.deletingLastPathComponent().appendingPathComponent("shared")
            }
        }
        return nil
    }()

    /// Reads all `attestations`, `assertions` or `receipts` in the order of their names: first the
    /// software-made ones of the repository, then the genuine ones, of which there are none when
    /// the folder is absent. A file that can't be read stops the tests: a vector that is left out
    /// without a word would seem to pass.
    package static func load<Vector: Decodable>(_ kind: String) -> [Vector] {
        do {
            let software = try SoftwareVectorFiles.files(kind).map { id, file in
                try decoder.decode(
                    Vector.self,
                    from: file.json(id: id, kind: String(kind.dropLast()))
                )
            }
            return software + genuine(kind)
        } catch {
            fatalError("\(kind): \(error)")
        }
    }

    private static var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return decoder
    }

    /// Reads the genuine ones alone, from a folder of that name. See ``load(_:)``.
    package static func genuine<Vector: Decodable>(_ kind: String) -> [Vector] {
        guard let folder = folder?.appendingPathComponent(kind) else { return [] }
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder.path)
                .filter { $0.hasSuffix(".json") }.sorted()
                .map { name in
                    let data = try Data(contentsOf: folder.appendingPathComponent(name))
                    return try decoder.decode(Vector.self, from: data)
                }
        } catch {
            fatalError("\(kind): \(error)")
        }
    }
}
