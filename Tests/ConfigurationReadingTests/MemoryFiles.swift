import ConfigurationReading
import Foundation

/// Files that exist in a test alone.
struct MemoryFiles: ConfigurationFiles {
    var files: [String: String] = [:]
    var permissions: [String: UInt16] = [:]
    var unreadable: Set<String> = []
    /// The numbers of file systems, by folder.
    var devices: [String: UInt64] = [:]
    /// Folders in memory.
    var inMemory: Set<String> = []
    /// Folders that can't be written.
    var readOnly: Set<String> = []
    /// The environment.
    var variables: [String: String] = [:]

    func contents(of path: String, limit: Int) throws(FileFault) -> [UInt8] {
        _ = try permissions(of: path)
        let bytes = Array((files[path] ?? "").utf8)
        guard bytes.count <= limit else { throw .tooLarge }
        return bytes
    }

    /// The folders are those of the files, and the one where the test is.
    func names(in folder: String) throws(FileFault) -> [String] {
        guard !folder.isEmpty, !["/tmp", "/var/tmp", "/dev/shm"].contains(folder) else {
            return []
        }
        let prefix = folder.hasSuffix("/") ? folder : folder + "/"
        let names = files.keys.filter { $0.hasPrefix(prefix) }.map { $0.dropFirst(prefix.count) }
        guard !names.isEmpty else { throw .missing }
        return names.filter { !$0.contains("/") }.map(String.init)
    }

    func device(of path: String) throws(FileFault) -> UInt64 {
        guard let device = devices[path] else { throw .missing }
        return device
    }

    func isInMemory(_ folder: String) -> Bool { inMemory.contains(folder) }

    func isReadOnly(_ folder: String) -> Bool { readOnly.contains(folder) }

    func variable(_ name: String) -> String? { variables[name] }

    func permissions(of path: String) throws(FileFault) -> UInt16 {
        guard files[path] != nil else { throw .missing }
        guard !unreadable.contains(path) else { throw .notReadable }
        return permissions[path] ?? 0o600
    }

    func permissions(ofFolder path: String) -> UInt16? { permissions[path] }
}

/// Loads one file that names no other.
func load(_ text: String, files: [String: String] = [:]) -> LoadedConfiguration {
    var memory = MemoryFiles(files: files)
    memory.files["p.yaml"] = text
    return ConfigurationLoader.load("p.yaml", files: memory)
}

/// The folder with Package.swift.
enum Repository {
    static var folder: String {
        var url = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        while url.path != "/" {
            url.deleteLastPathComponent()
            let manifest = url.appendingPathComponent("Package.swift").path
            if FileManager.default.fileExists(atPath: manifest) { return url.path }
        }
        return "."
    }
}
