import Expectations
import Foundation
import Testing

@testable import PortcullisClient

/// What every store does; the Keychain's can only be tried on a device.
@Suite final class StoreTests {
    /// Removed when the test ends.
    private let folder = FileManager.default.temporaryDirectory
        .appending(path: "portcullis-stores-\(UUID().uuidString)")
    private var file: URL { folder.appending(path: "record") }
    private var stores: [any EnrolmentStore] {
        [MemoryEnrolmentStore(), FileEnrolmentStore(file: file)]
    }

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    @Test func `a store keeps what replaces what it holds, and nothing else`() async throws {
        for store in stores {
            let (a, b) = (Data("a".utf8), Data("b".utf8))
            try await expectEqual(store.read(), nil)
            try await expectEqual(store.replace(b, with: a), false)
            #expect(try await store.replace(nil, with: a))
            try await expectEqual(store.replace(nil, with: b), false)
            try await expectEqual(store.replace(b, with: b), false)
            try await expectEqual(store.read(), a)
            #expect(try await store.replace(a, with: b))
            try await expectEqual(store.read(), b)
            #expect(try await store.replace(b, with: nil))
            #expect(try await store.replace(nil, with: nil))
            try await expectEqual(store.read(), nil)
        }
    }

    @Test func `of many that replace the same record one wins`() async throws {
        for store in stores {
            let wins = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<50 {
                    group.addTask { try await store.replace(nil, with: Data([UInt8(number)])) }
                }
                return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            expectEqual(wins, 1)
        }
    }

    @Test func `a file is its owner's alone, and what another process wrote is seen`()
        async throws
    {
        let (one, other) = (FileEnrolmentStore(file: file), FileEnrolmentStore(file: file))
        #expect(try await one.replace(nil, with: Data("a".utf8)))
        try await expectEqual(other.read(), Data("a".utf8))
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test(.timeLimit(.minutes(1)))
    func `no other user can open a file at any moment`() async throws {
        let path = file.path
        let store = FileEnrolmentStore(file: file)
        let isWriting = Guarded(true)
        let modes = Guarded<[String: Set<Int>]>([:])
        let watch = Thread {
            while isWriting.withLock({ $0 }) {
                // What is there now, under both names that it has in its life.
                for path in [path, path + ".new"] {
                    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
                    guard let mode = attributes?[.posixPermissions] as? Int else { continue }
                    modes.withLock { _ = $0[path, default: []].insert(mode) }
                }
            }
        }
        defer { isWriting.withLock { $0 = false } }
        watch.start()
        var last: Data?
        var number = 0
        // Each name is only there for a moment: it is written until both were seen.
        while number < 300 || modes.withLock({ $0.count }) < 2 {
            number += 1
            let next = Data("record \(number)".utf8)
            #expect(try await store.replace(last, with: next))
            last = next
            try Task.checkCancellation()
        }
        expectEqual(modes.withLock { $0 }, [path: [0o600], path + ".new": [0o600]])
    }

    @Test func `of many processes that start for the first time all read one mark`() async throws {
        for number in 0..<10 {
            let file = folder.appending(path: "\(number)/Library/mark")
            let marks = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<20 {
                    group.addTask { try await InstallMark(file: file).text() }
                }
                return try await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            expectEqual(marks.count, 1)
            try await expectEqual(InstallMark(file: file).text(), marks.first)
        }
    }

    @Test func `a mark that can't be read is an error, and none of another install`() async throws {
        // A folder in its place can't be read, as a file before the first unlock.
        try FileManager.default.createDirectory(
            at: folder.appending(path: "mark"),
            withIntermediateDirectories: true
        )
        await #expect(throws: (any Error).self) {
            try await InstallMark(file: folder.appending(path: "mark")).text()
        }
    }

    @Test func `a lease keeps others out until it ends or its holder is gone`() throws {
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        let (one, other) = (LeaseHolder(), LeaseHolder())
        let lease = one.lease(from: now, PortcullisLimits())
        #expect(other.isKept(out: lease, now: now))
        #expect(!one.isKept(out: lease, now: now))
        #expect(!other.isKept(out: lease, now: now.addingTimeInterval(90)))
        // Made before the clock was set back.
        #expect(!other.isKept(out: lease, now: now.addingTimeInterval(-4000)))
        #expect(!other.isKept(out: nil, now: now))
        one.retire()
        #expect(!other.isKept(out: lease, now: now))
        // A process that has ended: this one's child.
        let child = try Process.run(URL(filePath: "/bin/true"), arguments: [])
        child.waitUntilExit()
        let dead = EnrolmentRecord.Lease(
            holder: "x",
            process: child.processIdentifier,
            until: now.timeIntervalSince1970 + 20
        )
        #expect(!other.isKept(out: dead, now: now))
        let parent = EnrolmentRecord.Lease(
            holder: "x",
            process: getppid(),
            until: now.timeIntervalSince1970 + 20
        )
        #expect(other.isKept(out: parent, now: now))
    }
}
