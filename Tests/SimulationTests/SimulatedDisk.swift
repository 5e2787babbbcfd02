import AppAttest
import Foundation
import KeyStore
import SQLiteKeyStore
import TestSupport
import Testing

/// The store in SQLite's files. A crash leaves the files as they are in that moment; the process
/// that starts next gets a copy of them, and the old one does not touch it.
final class SimulatedDisk: StoreLab {
    private var folder: String
    private var folders: [String] = []
    /// Without a clean end, which would write.
    private var abandoned: [any KeyJournal] = []

    init() throws { folder = try Self.makeFolder() }

    deinit {
        for journal in abandoned { journal.close() }
        for folder in folders + [folder] { try? FileManager.default.removeItem(atPath: folder) }
    }

    /// In memory where there is such a file system: each commit waits for the disk.
    private static func makeFolder() throws -> String {
        let shared = "/dev/shm"
        let isShared = FileManager.default.isWritableFile(atPath: shared)
        let root = isShared ? shared : FileManager.default.temporaryDirectory.path
        let path = root + "/portcullis-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        return path
    }

    private var database: String { folder + "/portcullis.db" }

    func open() throws -> any KeyJournal {
        let journal = try SQLiteKeyJournal(path: database)
        abandoned.append(journal)
        return journal
    }

    func crash() throws {
        let before = database
        folders.append(folder)
        folder = try Self.makeFolder()
        for suffix in ["", "-wal", ".generation"]
        where FileManager.default.fileExists(atPath: before + suffix) {
            try FileManager.default.copyItem(atPath: before + suffix, toPath: database + suffix)
        }
    }

    func revoke(_ keyID: KeyID, isRead: Bool) throws {
        try set(.revoked(at: 1), of: keyID)
    }

    func set(_ status: KeyRecord.Status, of keyID: KeyID) throws {
        guard case .revoked(let second) = status else { return Self.unused() }
        _ = try KeyAdministration(path: database).revoke(keyID, ChangeNote(now: second))
    }

    func erase() { Self.unused() }

    func add(_ record: KeyRecord) { Self.unused() }

    private static func unused() {
        Issue.record("the simulation revokes keys and does nothing else to them")
    }

    func stored(_ keyID: KeyID) throws -> KeyRecord? {
        try KeyAdministration(path: database).record(keyID)
    }
}
