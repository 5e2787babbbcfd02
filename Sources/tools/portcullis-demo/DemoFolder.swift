import Foundation

/// The temporary folder of a run.
final class DemoFolder: Sendable {
    let path: String
    private let isKept: Bool

    init(isKept: Bool) throws(DemoError) {
        self.isKept = isKept
        let parent = FileManager.default.temporaryDirectory.path
        path = "\(parent)/portcullis-demo-\(UInt32.random(in: .min ... .max))"
        do {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw DemoError("can't make the folder \(path): \(error.localizedDescription)")
        }
    }

    /// The path of a file in it.
    func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file and returns its path.
    func write(_ name: String, _ text: String) throws(DemoError) -> String {
        let isWritten = FileManager.default.createFile(
            atPath: file(name),
            contents: Data(text.utf8),
            attributes: [.posixPermissions: 0o600]
        )
        guard isWritten else {
            throw DemoError("can't write \(file(name))")
        }
        return file(name)
    }

    /// The text of a file; empty without a file.
    func text(_ name: String) -> String {
        String(decoding: FileManager.default.contents(atPath: file(name)) ?? Data(), as: UTF8.self)
    }

    /// Takes the folder away, unless it is to be kept.
    ///
    /// - Returns: where it still is.
    func remove() -> String? {
        guard !isKept else { return path }
        do {
            try FileManager.default.removeItem(atPath: path)
            return nil
        } catch {
            return path
        }
    }
}
