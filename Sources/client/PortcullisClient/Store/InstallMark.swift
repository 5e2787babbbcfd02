import Foundation

/// A random text that is made once for an install of an app, and goes when the app is deleted. What
/// outlives the app, such as a Keychain item, carries it to say of which install it is.
///
/// It is in a file rather than in the defaults: of two processes that start for the first time at
/// once, exactly one makes it, and a file that is closed before the first unlock can't be mistaken
/// for one that is not there.
struct InstallMark: Sendable {
    private let file: PrivateFile

    /// A mark in this file. Its folder is made if need be.
    init(file url: URL) { file = PrivateFile(url: url) }

    /// The mark of this install.
    func text() async throws -> String {
        if let mark = try kept() { return mark }
        try FileManager.default.createDirectory(
            at: file.url.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        return try await file.locked {
            if let mark = try kept() { return mark }
            let mark = UUID().uuidString
            try file.write(Data(mark.utf8))
            return mark
        }
    }

    /// A file that is something else is replaced.
    private func kept() throws -> String? {
        guard let content = try file.read() else { return nil }
        return UUID(uuidString: String(decoding: content, as: UTF8.self))?.uuidString
    }
}
