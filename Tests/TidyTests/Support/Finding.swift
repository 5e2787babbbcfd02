/// Something that the style does not allow, and what to write instead.
struct Finding: Hashable, CustomStringConvertible {
    /// Path inside the package.
    let path: String
    /// Counted from 1; 0 for the file as a whole.
    let line: Int
    let text: String

    var description: String { line == 0 ? "\(path): \(text)" : "\(path):\(line): \(text)" }
}
