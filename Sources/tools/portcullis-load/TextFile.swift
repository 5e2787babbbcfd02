import Foundation
import LoadGenerator

/// Files that are read and written whole.
enum TextFile {
    /// The most bytes that are read.
    private static let readMax = 1 << 20

    static func read(_ path: String) throws(LoadError) -> [UInt8] {
        guard let file = FileHandle(forReadingAtPath: path),
            let data = try? file.read(upToCount: readMax)
        else { throw LoadError("\(path): can't be read") }
        return [UInt8](data)
    }

    /// Replaces a file as a whole, so that a crash leaves the old one or the new one.
    static func write(_ path: String, _ text: String) throws(LoadError) {
        do {
            try text.write(toFile: path, atomically: true, encoding: .utf8)
        } catch {
            throw LoadError("\(path): can't be written")
        }
    }
}
