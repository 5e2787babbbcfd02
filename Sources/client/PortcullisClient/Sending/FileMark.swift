import Foundation

/// By what a file is known to be the same as before: which file it is, its size, and when it was
/// written last.
struct FileMark: Hashable, Sendable {
    private let number: Int?
    private let size: UInt64?
    private let written: Date?

    /// - Throws: ``PortcullisError/contentUnreadable``.
    init(_ file: URL) throws {
        // The attributes of a symbolic link would be those of the link.
        let path = file.resolvingSymlinksInPath().path
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
            throw PortcullisError.contentUnreadable
        }
        number = (attributes[.systemFileNumber] as? NSNumber)?.intValue
        size = (attributes[.size] as? NSNumber)?.uint64Value
        written = attributes[.modificationDate] as? Date
    }
}
