internal import Foundation

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// Keys in files, one for each, named after the key id. Processes may share the folder.
struct SimulatedKeyFolder: Sendable {
    private let url: URL

    /// A folder, which is made if need be.
    init(_ url: URL) throws {
        self.url = url
        try FileManager.default.createDirectory(
            at: url,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
    }

    /// Changes a key while no other process does; keeps what was changed before it returns.
    ///
    /// - Parameters:
    ///   - keyID: the key id in base64.
    ///   - change: gets the key, or `nil` where there is none. A key that it throws for is not
    ///     kept.
    /// - Returns: what `change` returned.
    /// - Throws: what `change` throws, and what the file system does.
    func change<Result>(
        _ keyID: String,
        _ change: (inout SimulatedKey?) throws -> Result
    ) throws -> Result {
        let lock = url.appendingPathComponent("lock")
        let descriptor = open(lock.path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
        // The lock ends with the descriptor.
        defer { close(descriptor) }
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw CocoaError(.fileLocking) }
        }
        let file = self.file(of: keyID)
        var key = try? JSONDecoder().decode(SimulatedKey.self, from: Data(contentsOf: file))
        let result = try change(&key)
        if let key { try JSONEncoder().encode(key).write(to: file, options: .atomic) }
        return result
    }

    /// base64 has slashes, which a name can't have.
    private func file(of keyID: String) -> URL {
        let name = keyID.map { $0 == "/" ? "_" : $0 == "+" ? "-" : $0 }
        return url.appendingPathComponent(String(name) + ".json")
    }
}
