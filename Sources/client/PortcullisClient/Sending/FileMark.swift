import Foundation

/// By what a file is known to be the same as before: which file it is, its size, and when it was
/// written last.
struct FileMark: Hashable, Sendable, Codable {
    private let number: Int?
    private let size: UInt64?
    /// In seconds since 2001, by its bits: no encoding may round it.
    private let written: UInt64?

    /// - Throws: ``PortcullisError/contentUnreadable``.
    init(_ file: URL) throws {
        // The attributes of a symbolic link would be those of the link.
        let path = file.resolvingSymlinksInPath().path
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
            throw PortcullisError.contentUnreadable
        }
        number = (attributes[.systemFileNumber] as? NSNumber)?.intValue
        size = (attributes[.size] as? NSNumber)?.uint64Value
        let date = attributes[.modificationDate] as? Date
        written = date?.timeIntervalSinceReferenceDate.bitPattern
    }
}
